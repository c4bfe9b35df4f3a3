// Command share goes through a dialogue of a share group with franz-go: ADDRESS NAME, the name of the topic and of the group.
// It prints a line for each step, with the records as value:deliveries.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	patience    = 30 * time.Second
	ofGroups    = kmsg.ConfigResourceType(32)
	firstReset  = "earliest"
	mostRecords = 100
)

type dialogue struct {
	address, name string
	writer        *kgo.Client
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func main() {
	d := dialogue{address: os.Args[1], name: os.Args[2]}
	writer, err := kgo.NewClient(kgo.SeedBrokers(d.address), kgo.DefaultProduceTopic(d.name))
	must(err)
	defer writer.Close()
	d.writer = writer
	d.prepare()
	d.acknowledge()
	d.leave()
	d.twoMembers()
}

func (d dialogue) prepare() {
	limited, cancel := bounded()
	defer cancel()
	_, err := kadm.NewClient(d.writer).CreateTopic(limited, 1, 1, nil, d.name)
	must(err)
	reset := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	value := firstReset
	reset.Name, reset.Value = "share.auto.offset.reset", &value
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = ofGroups, d.name
	resource.Configs = append(resource.Configs, reset)
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	request.Resources = append(request.Resources, resource)
	_, err = request.RequestWith(limited, d.writer)
	must(err)
}

func (d dialogue) put(first, count int) {
	limited, cancel := bounded()
	defer cancel()
	var records []*kgo.Record
	for number := first; number < first+count; number++ {
		records = append(records, kgo.StringRecord(fmt.Sprint(number)))
	}
	must(d.writer.ProduceSync(limited, records...).FirstErr())
}

// faults collects what brokers say of acknowledgements.
type faults struct {
	sync.Mutex
	seen []string
}

func (f *faults) note(_ *kgo.Client, results kgo.ShareAckResults) {
	f.Lock()
	defer f.Unlock()
	for _, one := range results {
		if one.Err != nil {
			f.seen = append(f.seen, one.Err.Error())
		}
	}
}

func (d dialogue) member(f *faults) *kgo.Client {
	member, err := kgo.NewClient(
		kgo.SeedBrokers(d.address),
		kgo.ShareGroup(d.name),
		kgo.ConsumeTopics(d.name),
		kgo.ShareAckCallback(f.note),
		kgo.FetchMaxWait(300*time.Millisecond),
	)
	must(err)
	return member
}

// poll waits for a number of records.
func poll(member *kgo.Client, count int) []*kgo.Record {
	limited, cancel := bounded()
	defer cancel()
	var records []*kgo.Record
	for len(records) < count && limited.Err() == nil {
		records = append(records, member.PollRecords(limited, mostRecords).Records()...)
	}
	return records
}

func say(step string, records []*kgo.Record) {
	var words []string
	for _, one := range records {
		words = append(words, fmt.Sprintf("%s:%d", one.Value, one.DeliveryCount()))
	}
	fmt.Println(step, strings.Join(words, " "))
}

func (d dialogue) acknowledge() {
	var f faults
	member := d.member(&f)
	defer member.Close()
	d.put(0, 6)
	records := poll(member, 6)
	say("first", records)
	for _, one := range records {
		switch string(one.Value) {
		case "1":
			one.Ack(kgo.AckRelease)
		case "3":
			one.Ack(kgo.AckReject)
		default:
			one.Ack(kgo.AckAccept)
		}
	}
	flush(member)
	records = poll(member, 1)
	say("released", records)
	records[0].Ack(kgo.AckRenew)
	flush(member)
	records[0].Ack(kgo.AckAccept)
	flush(member)
	fmt.Println("faults", f.seen)
}

func flush(member *kgo.Client) {
	limited, cancel := bounded()
	defer cancel()
	must(member.FlushAcks(limited))
}

// leave ends a member that has acknowledged half of its records.
func (d dialogue) leave() {
	var f faults
	d.put(6, 4)
	member := d.member(&f)
	records := poll(member, 4)
	say("before", records)
	for _, one := range records[:2] {
		one.Ack(kgo.AckAccept)
	}
	for _, one := range records[2:] {
		one.Ack(kgo.AckRelease)
	}
	flush(member)
	member.Close()
	member = d.member(&f)
	defer member.Close()
	records = poll(member, 2)
	// How often they were delivered depends on whether the first member had fetched them again before it left.
	fmt.Println("after", string(records[0].Value), string(records[1].Value))
	member.MarkAcks(kgo.AckAccept)
	flush(member)
	fmt.Println("faults", f.seen)
}

// twoMembers share the records of one partition.
func (d dialogue) twoMembers() {
	var f faults
	var lock sync.Mutex
	counts := map[string]int{}
	limited, cancel := bounded()
	defer cancel()
	var members sync.WaitGroup
	for range 2 {
		members.Go(func() {
			member := d.member(&f)
			defer member.Close()
			for limited.Err() == nil {
				for _, one := range member.PollRecords(limited, 10).Records() {
					one.Ack(kgo.AckAccept)
					lock.Lock()
					counts[string(one.Value)]++
					if len(counts) == 100 {
						cancel()
					}
					lock.Unlock()
				}
			}
			flush(member)
		})
	}
	for first := 100; first < 200; first += 5 {
		d.put(first, 5)
	}
	members.Wait()
	var twice []string
	for value, count := range counts {
		if count > 1 {
			twice = append(twice, value)
		}
	}
	sort.Strings(twice)
	fmt.Println("records", len(counts), "twice", twice)
	fmt.Println("faults", f.seen)
}
