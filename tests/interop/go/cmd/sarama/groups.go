package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"horolog.test/clients/checks"
)

// handler tells a member's state what sarama gives it.
type handler struct {
	topic string
	state *checks.State
}

func (h handler) Setup(session sarama.ConsumerGroupSession) error {
	h.state.Assign(session.Claims()[h.topic])
	return nil
}

func (h handler) Cleanup(session sarama.ConsumerGroupSession) error {
	h.state.Revoke(session.Claims()[h.topic])
	return nil
}

func (h handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		h.state.See(message.Partition, message.Offset)
		session.MarkMessage(message, "")
	}
	return nil
}

func (c client) join(topic string) (checks.Member, error) {
	group, err := sarama.NewConsumerGroup(c.addresses(), topic, c.config(func(config *sarama.Config) {
		config.Consumer.Return.Errors = false
		config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	}))
	if err != nil {
		return checks.Member{}, err
	}
	member := handler{topic, checks.NewState()}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := group.Consume(ctx, []string{topic}, member); err != nil && !errors.Is(err, context.Canceled) {
				done <- err
				return
			}
		}
		done <- group.Close()
	}()
	return checks.Member{State: member.state, Leave: func() error { stop(); return <-done }}, nil
}

func checkCommitted(admin sarama.ClusterAdmin, topic string, partition int32, expected int64) error {
	fetched, err := admin.ListConsumerGroupOffsets(topic, map[string][]int32{topic: {partition}})
	if err != nil {
		return err
	}
	block := fetched.GetBlock(topic, partition)
	if block == nil {
		return fmt.Errorf("no answer about partition %d", partition)
	}
	return checks.Equal(expected, block.Offset, "committed offset")
}

func (c client) adminGroups(topic string) error {
	if err := c.toFour(topic, 40); err != nil {
		return err
	}
	member, err := c.join(topic)
	if err != nil {
		return err
	}
	if err := checks.Await("the member reads everything", func() bool { return len(member.Seen()) == 40 }); err != nil {
		return err
	}
	admin, err := sarama.NewClusterAdmin(c.addresses(), c.config())
	if err != nil {
		return err
	}
	defer admin.Close()
	listed, err := admin.ListConsumerGroups()
	if err != nil {
		return err
	}
	if _, ok := listed[topic]; !ok {
		return fmt.Errorf("not listed: %v", listed)
	}
	described, err := admin.DescribeConsumerGroups([]string{topic})
	if err != nil {
		return err
	}
	if err := checks.Equal("Stable", described[0].State, "state"); err != nil {
		return err
	}
	if err := member.Leave(); err != nil {
		return err
	}
	if err := checkCommitted(admin, topic, 1, 10); err != nil {
		return err
	}
	if !c.version.IsAtLeast(sarama.V1_1_0_0) {
		return nil
	}
	if err := c.deleteOffset(admin, topic); err != nil {
		return err
	}
	if err := admin.DeleteConsumerGroup(topic); err != nil {
		return err
	}
	listed, err = admin.ListConsumerGroups()
	if _, still := listed[topic]; still {
		return fmt.Errorf("a deleted group is still listed")
	}
	return err
}

func (c client) deleteOffset(admin sarama.ClusterAdmin, topic string) error {
	if !c.version.IsAtLeast(sarama.V2_4_0_0) {
		return nil
	}
	if err := admin.DeleteConsumerGroupOffset(topic, topic, 1); err != nil {
		return err
	}
	return checkCommitted(admin, topic, 1, -1)
}

func (c client) adminTopics(topic string) error {
	admin, err := sarama.NewClusterAdmin(c.addresses(), c.config())
	if err != nil {
		return err
	}
	defer admin.Close()
	value := "123456"
	detail := &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1, ConfigEntries: map[string]*string{"retention.ms": &value}}
	if err := admin.CreateTopic(topic, detail, false); err != nil {
		return err
	}
	if err := checks.Await("two partitions", func() bool { return partitions(admin, topic) == 2 }); err != nil {
		return err
	}
	if c.version.IsAtLeast(sarama.V1_0_0_0) {
		if err := c.change(admin, topic, value); err != nil {
			return err
		}
	}
	if err := admin.DeleteTopic(topic); err != nil {
		return err
	}
	return checks.Await("the topic is gone", func() bool { return partitions(admin, topic) <= 0 })
}

// change asks for a configuration, sets another and adds a partition.
func (c client) change(admin sarama.ClusterAdmin, topic, value string) error {
	changed := "654321"
	if err := checks.Equal(value, retention(admin, topic), "retention.ms"); err != nil {
		return err
	}
	var err error
	if c.version.IsAtLeast(sarama.V2_3_0_0) {
		entries := map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &changed}}
		err = admin.IncrementalAlterConfig(sarama.TopicResource, topic, entries, false)
	} else {
		err = admin.AlterConfig(sarama.TopicResource, topic, map[string]*string{"retention.ms": &changed}, false)
	}
	if err != nil {
		return err
	}
	if err := checks.Await("a changed configuration", func() bool { return retention(admin, topic) == changed }); err != nil {
		return err
	}
	if err := admin.CreatePartitions(topic, 3, nil, false); err != nil {
		return err
	}
	return checks.Await("three partitions", func() bool { return partitions(admin, topic) == 3 })
}

func partitions(admin sarama.ClusterAdmin, topic string) int {
	described, err := admin.DescribeTopics([]string{topic})
	if err != nil || len(described) != 1 || described[0].Err != sarama.ErrNoError {
		return -1
	}
	return len(described[0].Partitions)
}

func retention(admin sarama.ClusterAdmin, topic string) string {
	entries, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"}})
	if err != nil {
		return err.Error()
	}
	for _, entry := range entries {
		if entry.Name == "retention.ms" {
			return entry.Value
		}
	}
	return ""
}
