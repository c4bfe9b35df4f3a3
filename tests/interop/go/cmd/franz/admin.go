package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"horolog.test/clients/checks"
)

func retention(ctx context.Context, admin *kadm.Client, topic string) string {
	described, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil || len(described) != 1 {
		return ""
	}
	for _, config := range described[0].Configs {
		if config.Key == "retention.ms" {
			return config.MaybeValue()
		}
	}
	return ""
}

func partitions(ctx context.Context, admin *kadm.Client, topic string) int {
	listed, err := admin.ListTopics(ctx, topic)
	if err != nil || listed[topic].Err != nil {
		return -1
	}
	return len(listed[topic].Partitions)
}

func (f franz) adminTopics(topic string) error {
	admin, err := f.admin()
	if err != nil {
		return err
	}
	defer admin.Close()
	ctx, cancel := bounded()
	defer cancel()
	value := "123456"
	if _, err := admin.CreateTopic(ctx, 2, 1, map[string]*string{"retention.ms": &value}, topic); err != nil {
		return err
	}
	if err := checks.Await("two partitions", func() bool { return partitions(ctx, admin, topic) == 2 }); err != nil {
		return err
	}
	if err := checks.Equal(value, retention(ctx, admin, topic), "retention.ms"); err != nil {
		return err
	}
	changed := "654321"
	if _, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &changed}}, topic); err != nil {
		return err
	}
	if err := checks.Await("a changed configuration", func() bool { return retention(ctx, admin, topic) == changed }); err != nil {
		return err
	}
	if _, err := admin.CreatePartitions(ctx, 1, topic); err != nil {
		return err
	}
	if err := checks.Await("three partitions", func() bool { return partitions(ctx, admin, topic) == 3 }); err != nil {
		return err
	}
	deleted, err := admin.DeleteTopics(ctx, topic)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		return err
	}
	return checks.Await("the topic is gone", func() bool { return partitions(ctx, admin, topic) == -1 })
}

func (f franz) adminGroups(topic string) error {
	if err := f.toFour(topic, 40); err != nil {
		return err
	}
	member, err := f.join(topic)
	if err != nil {
		return err
	}
	if err := checks.Await("the member reads everything", func() bool { return len(member.Seen()) == 40 }); err != nil {
		return err
	}
	admin, err := f.admin()
	if err != nil {
		return err
	}
	defer admin.Close()
	ctx, cancel := bounded()
	defer cancel()
	listed, err := admin.ListGroups(ctx)
	if err != nil {
		return err
	}
	if _, ok := listed[topic]; !ok {
		return fmt.Errorf("not listed: %v", listed.Groups())
	}
	described, err := admin.DescribeGroups(ctx, topic)
	if err != nil {
		return err
	}
	if err := checks.Equal("Stable", described[topic].State, "state"); err != nil {
		return err
	}
	if err := member.Leave(); err != nil {
		return err
	}
	return f.offsetsOfGroup(ctx, admin, topic)
}

func (f franz) offsetsOfGroup(ctx context.Context, admin *kadm.Client, topic string) error {
	offsets, err := admin.FetchOffsets(ctx, topic)
	if err != nil {
		return err
	}
	found, _ := offsets.Lookup(topic, 1)
	if err := checks.Equal(10, found.At, "committed offset"); err != nil {
		return err
	}
	changed := make(kadm.Offsets)
	changed.AddOffset(topic, 1, 3, -1)
	if err := admin.CommitAllOffsets(ctx, topic, changed); err != nil {
		return err
	}
	if offsets, err = admin.FetchOffsets(ctx, topic); err != nil {
		return err
	}
	found, _ = offsets.Lookup(topic, 1)
	if err := checks.Equal(3, found.At, "changed offset"); err != nil {
		return err
	}
	gone, err := admin.DeleteGroup(ctx, topic)
	if err == nil {
		err = gone.Err
	}
	if err != nil {
		return err
	}
	listed, err := admin.ListGroups(ctx)
	if _, still := listed[topic]; still {
		return fmt.Errorf("a deleted group is still listed")
	}
	return err
}
