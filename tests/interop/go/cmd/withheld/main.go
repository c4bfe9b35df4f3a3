// Three clients of franz-go that go on while brokers cannot write: an idempotent producer, a producer of transactions of which every
// second one is aborted, and a member of a group that commits what it has read.
//
//	withheld SERVERS TOPIC
//
// It prints "going" once each of them has done something, "waited" once each has waited for responses in vain after the line "held",
// "on" once each has done more after the line "released", and at the line "stop" what a reader of committed records finds.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	servers = strings.Split(os.Args[1], ",")
	topic   = os.Args[2]
	over    atomic.Bool
	faults  sync.Map
	failed  atomic.Bool
)

const longWait = 8 * time.Second

// What each client has done so far, and how many of its requests had no response for long, or none.
var done, waited [3]atomic.Int64

// Counts requests that wait.
type waits struct{ of int }

func (hook waits) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, readWait, timeToRead time.Duration, err error) {
	isFetch := key == 1
	if !isFetch && (readWait+timeToRead > longWait || err != nil) {
		waited[hook.of].Add(1)
	}
}

func client(of int, options ...kgo.Opt) *kgo.Client {
	options = append(options, kgo.SeedBrokers(servers...), kgo.DefaultProduceTopic(topic), kgo.WithHooks(waits{of}))
	made, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	return made
}

func fault(what string, err error) {
	faults.Store(fmt.Sprintf("%s: %v", what, err), true)
	failed.Store(true)
}

func record(name string, number int64) *kgo.Record {
	return &kgo.Record{Partition: int32(number % 3), Value: []byte(name + strconv.FormatInt(number, 10))}
}

// A record at a time, each acknowledged.
func idempotent(ctx context.Context) {
	producer := client(0, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer producer.Close()
	for number := int64(0); !over.Load(); number++ {
		if err := producer.ProduceSync(ctx, record("i", number)).FirstErr(); err != nil {
			fault("produce", err)
			return
		}
		done[0].Store(number + 1)
	}
}

// Transactions of three records; the odd ones are aborted, and their values begin otherwise.
func transactional(ctx context.Context) {
	producer := client(
		1, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("withheld"),
		kgo.TransactionTimeout(2*time.Minute), // the default of 40 s ends a transaction that waits for longer
	)
	defer producer.Close()
	for number := int64(0); !over.Load(); number++ {
		commits := number%2 == 0
		name, end := "a", kgo.TryAbort
		if commits {
			name, end = "t", kgo.TryCommit
		}
		if err := producer.BeginTransaction(); err != nil {
			fault("begin", err)
			return
		}
		records := []*kgo.Record{record(name, 3*number), record(name, 3*number+1), record(name, 3*number+2)}
		if err := producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
			fault("produce in a transaction", err)
			return
		}
		if err := producer.EndTransaction(ctx, end); err != nil {
			fault("end", err)
			return
		}
		done[1].Store(number + 1)
	}
}

func member(ctx context.Context, commits *atomic.Int64) {
	consumer := client(
		2, kgo.ConsumerGroup("withheld"), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	defer consumer.Close()
	for !over.Load() {
		limited, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		consumer.PollFetches(limited)
		cancel()
		offsets := consumer.UncommittedOffsets()
		if len(offsets) == 0 { // the same once more, so that it has something to wait for
			offsets = consumer.CommittedOffsets()
		}
		var failure error
		consumer.CommitOffsetsSync(ctx, offsets, func(
			_ *kgo.Client, _ *kmsg.OffsetCommitRequest, _ *kmsg.OffsetCommitResponse, err error,
		) {
			failure = err
		})
		if failure != nil {
			fmt.Fprintln(os.Stderr, "commit:", failure)
		} else if len(offsets) > 0 {
			commits.Add(1)
		}
	}
}

// The values that a reader of committed records finds, each with how often.
func committed(ctx context.Context) map[string]int {
	ends := client(2, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer ends.Close()
	found := map[string]int{}
	for {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		fetches := ends.PollFetches(limited)
		cancel()
		if fetches.NumRecords() == 0 {
			return found
		}
		fetches.EachRecord(func(one *kgo.Record) { found[string(one.Value)]++ })
	}
}

// Waits until each of the counts is larger by so much, or a client has failed.
func progress(counts *[3]atomic.Int64, by int64) {
	from := [3]int64{}
	for index := range counts {
		from[index] = counts[index].Load()
	}
	for {
		all := true
		for index := range counts {
			all = all && counts[index].Load() >= from[index]+by
		}
		if all || failed.Load() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var running sync.WaitGroup
	for _, one := range []func(){
		func() { idempotent(ctx) }, func() { transactional(ctx) }, func() { member(ctx, &done[2]) },
	} {
		running.Add(1)
		go func() { defer running.Done(); one() }()
	}
	input := bufio.NewReader(os.Stdin)
	progress(&done, 2)
	fmt.Println("going")
	for {
		line, err := input.ReadString('\n')
		if err != nil {
			panic(err)
		}
		if line == "stop\n" {
			break
		}
		if line == "held\n" {
			progress(&waited, 1)
			fmt.Println("waited")
		} else {
			progress(&done, 2)
			fmt.Println("on")
		}
	}
	over.Store(true)
	running.Wait()
	found := committed(ctx)
	wrong := []string{}
	expect := func(name string, number int64, times int) {
		value := name + strconv.FormatInt(number, 10)
		if found[value] != times {
			wrong = append(wrong, fmt.Sprintf("%s %d times", value, found[value]))
		}
	}
	for number := int64(0); number < done[0].Load(); number++ {
		expect("i", number, 1)
	}
	for number := int64(0); number < 3*done[1].Load(); number++ {
		expect("t", number, int(1-number/3%2))
		expect("a", number, 0)
	}
	fmt.Println("wrong", wrong)
	said := []string{}
	faults.Range(func(key, _ any) bool { said = append(said, key.(string)); return true })
	fmt.Println("faults", said)
	fmt.Fprintln(os.Stderr, done[0].Load(), done[1].Load(), done[2].Load())
}
