// The client franz-go, unmodified, does the checks that the command line names.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"horolog.test/clients/checks"
)

type franz struct{ *checks.Run }

var codecs = map[string]kgo.CompressionCodec{
	"codec_none":   kgo.NoCompression(),
	"codec_gzip":   kgo.GzipCompression(),
	"codec_snappy": kgo.SnappyCompression(),
	"codec_lz4":    kgo.Lz4Compression(),
	"codec_zstd":   kgo.ZstdCompression(),
}

func main() {
	checks.Main(os.Args[1:], func(run *checks.Run, check string) func(string) error {
		f := franz{run}
		if codec, ok := codecs[check]; ok {
			return func(topic string) error {
				return f.roundTrip(topic, kgo.DisableIdempotentWrite(), kgo.ProducerBatchCompression(codec))
			}
		}
		group := checks.Group{Produce: f.toFour, Join: f.join}
		return map[string]func(string) error{
			"idempotent": func(topic string) error {
				return f.roundTrip(topic, kgo.ProducerBatchMaxBytes(600))
			},
			"offsets_by_time":     f.offsetsByTime,
			"max_timestamp":       f.maxTimestamp,
			"log_append_time":     f.logAppendTime,
			"too_old_refused":     f.tooOldRefused,
			"group_rebalance":     group.Rebalance,
			"group_resume":        group.Resume,
			"transactions":        f.transactions,
			"transaction_offsets": f.transactionOffsets,
			"admin_topics":        f.adminTopics,
			"admin_groups":        f.adminGroups,
		}[check]
	})
}

func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), checks.Wait)
}

func (f franz) client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(f.Address),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(20 * time.Millisecond),
	}, options...)...)
}

func (f franz) admin() (*kadm.Client, error) {
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	return kadm.NewClient(client), nil
}

func (f franz) records(topic string, count int) []*kgo.Record {
	records := make([]*kgo.Record, count)
	for at, one := range f.Plan.Samples[:count] {
		records[at] = &kgo.Record{Topic: topic, Timestamp: time.UnixMilli(one.Timestamp), Key: one.Key, Value: one.Value}
		for _, header := range one.Headers {
			records[at].Headers = append(records[at].Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
	}
	return records
}

func (f franz) produce(records []*kgo.Record, options ...kgo.Opt) error {
	client, err := f.client(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := bounded()
	defer cancel()
	return client.ProduceSync(ctx, records...).FirstErr()
}

// read takes what is expected and a moment more, in which nothing else may come.
func (f franz) read(topic string, expected int, options ...kgo.Opt) ([]*kgo.Record, error) {
	start := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	client, err := f.client(append(options, kgo.ConsumePartitions(start))...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var records []*kgo.Record
	for until := time.Now().Add(checks.Wait); time.Now().Before(until); {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		fetches := client.PollFetches(ctx)
		cancel()
		for _, failed := range fetches.Errors() {
			if !errors.Is(failed.Err, context.DeadlineExceeded) {
				return nil, failed.Err
			}
		}
		if fetches.NumRecords() == 0 && len(records) >= expected {
			break
		}
		records = append(records, fetches.Records()...)
	}
	return records, checks.Equal(expected, len(records), "records")
}

func sample(record *kgo.Record) checks.Sample {
	one := checks.Sample{Timestamp: record.Timestamp.UnixMilli(), Key: record.Key, Value: record.Value}
	for _, header := range record.Headers {
		one.Headers = append(one.Headers, checks.Header{Name: header.Key, Value: header.Value})
	}
	return one
}

func (f franz) roundTrip(topic string, options ...kgo.Opt) error {
	sent := f.records(topic, len(f.Plan.Samples))
	if err := f.produce(sent, options...); err != nil {
		return err
	}
	for at, record := range sent {
		if err := checks.Equal(int64(at), record.Offset, "offset told to the producer"); err != nil {
			return err
		}
	}
	records, err := f.read(topic, len(sent))
	if err != nil {
		return err
	}
	read := make([]checks.Sample, len(records))
	for at, record := range records {
		read[at] = sample(record)
	}
	return f.Same(read)
}

func (f franz) offsetsByTime(topic string) error {
	if err := f.produce(f.records(topic, len(f.Plan.Samples))); err != nil {
		return err
	}
	admin, err := f.admin()
	if err != nil {
		return err
	}
	defer admin.Close()
	ctx, cancel := bounded()
	defer cancel()
	for _, wanted := range f.Plan.LookUps {
		listed, err := admin.ListOffsetsAfterMilli(ctx, wanted.Timestamp, topic)
		if err != nil {
			return err
		}
		found, _ := listed.Lookup(topic, 0)
		if wanted.Offset < 0 { // the client asks for the end then
			wanted.Offset = int64(len(f.Plan.Samples))
		} else if err := checks.Equal(f.Plan.Samples[wanted.Offset].Timestamp, found.Timestamp, "time"); err != nil {
			return err
		}
		if err := checks.Equal(wanted.Offset, found.Offset, fmt.Sprintf("offset at %d", wanted.Timestamp)); err != nil {
			return err
		}
	}
	return nil
}

func (f franz) maxTimestamp(topic string) error {
	if err := f.produce(f.records(topic, len(f.Plan.Samples))); err != nil {
		return err
	}
	admin, err := f.admin()
	if err != nil {
		return err
	}
	defer admin.Close()
	ctx, cancel := bounded()
	defer cancel()
	listed, err := admin.ListMaxTimestampOffsets(ctx, topic)
	if err != nil {
		return err
	}
	found, _ := listed.Lookup(topic, 0)
	largest := int64(0)
	for _, one := range f.Plan.Samples {
		largest = max(largest, one.Timestamp)
	}
	if err := checks.Equal(largest, found.Timestamp, "largest time"); err != nil {
		return err
	}
	return checks.Equal(largest, f.Plan.Samples[found.Offset].Timestamp, "time of its offset")
}

func (f franz) logAppendTime(topic string) error {
	before := time.Now().UnixMilli()
	if err := f.produce(f.records(topic, 10)); err != nil {
		return err
	}
	records, err := f.read(topic, 10)
	if err != nil {
		return err
	}
	for _, record := range records {
		if err := checks.Equal(1, record.Attrs.TimestampType(), "type of the time"); err != nil {
			return err
		}
		if at := record.Timestamp.UnixMilli(); at < before || at > time.Now().UnixMilli() {
			return fmt.Errorf("append time %d", at)
		}
	}
	return nil
}

func (f franz) tooOldRefused(topic string) error {
	late := &kgo.Record{Topic: topic, Timestamp: time.Now().Add(-checks.TwoDays), Value: []byte("late")}
	if err := f.produce([]*kgo.Record{late}); !errors.Is(err, kerr.InvalidTimestamp) {
		return fmt.Errorf("a record of two days ago: %w", err)
	}
	if err := f.produce([]*kgo.Record{{Topic: topic, Value: []byte("fresh")}}); err != nil {
		return err
	}
	_, err := f.read(topic, 1)
	return err
}

func (f franz) toFour(topic string, count int) error {
	records := make([]*kgo.Record, count)
	for number := range records {
		records[number] = &kgo.Record{Topic: topic, Partition: int32(number % 4), Value: fmt.Append(nil, number)}
	}
	return f.produce(records)
}

func (f franz) join(topic string) (checks.Member, error) {
	state := checks.NewState()
	client, err := f.client(
		kgo.ConsumerGroup(topic),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, given map[string][]int32) { state.Assign(given[topic]) }),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, taken map[string][]int32) {
			client.CommitUncommittedOffsets(ctx)
			state.Revoke(taken[topic])
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { state.Revoke(lost[topic]) }),
	)
	if err != nil {
		return checks.Member{}, err
	}
	polling, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		for polling.Err() == nil {
			client.PollFetches(polling).EachRecord(func(record *kgo.Record) { state.See(record.Partition, record.Offset) })
		}
		ctx, cancel := bounded()
		defer cancel()
		err := client.CommitUncommittedOffsets(ctx)
		client.Close()
		done <- err
	}()
	return checks.Member{State: state, Leave: func() error { stop(); return <-done }}, nil
}

func (f franz) transactions(topic string) error {
	client, err := f.client(kgo.TransactionalID(topic))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := bounded()
	defer cancel()
	for _, how := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		if err := client.ProduceSync(ctx, f.records(topic, 50)...).FirstErr(); err != nil {
			return err
		}
		if err := client.EndTransaction(ctx, how); err != nil {
			return err
		}
	}
	if _, err := f.read(topic, 100, kgo.FetchIsolationLevel(kgo.ReadCommitted())); err != nil {
		return fmt.Errorf("read_committed: %w", err)
	}
	if _, err := f.read(topic, 150, kgo.FetchIsolationLevel(kgo.ReadUncommitted())); err != nil {
		return fmt.Errorf("read_uncommitted: %w", err)
	}
	return nil
}

// transactionOffsets reads in a group, once with a transaction that commits and once with one that aborts.
func (f franz) transactionOffsets(topic string) error {
	if err := f.produce(f.records(topic, 50)); err != nil {
		return err
	}
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(f.Address), kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic), kgo.TransactionalID(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
	)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := readInTransaction(session, 50, kgo.TryCommit); err != nil {
		return err
	}
	if err := f.committed(topic, 50); err != nil {
		return err
	}
	if err := f.produce(f.records(topic, 10)); err != nil {
		return err
	}
	if err := readInTransaction(session, 10, kgo.TryAbort); err != nil {
		return err
	}
	return f.committed(topic, 50)
}

func readInTransaction(session *kgo.GroupTransactSession, count int, how kgo.TransactionEndTry) error {
	ctx, cancel := bounded()
	defer cancel()
	if err := session.Begin(); err != nil {
		return err
	}
	for read := 0; read < count; {
		fetches := session.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		read += fetches.NumRecords()
	}
	committed, err := session.End(ctx, how)
	if err != nil {
		return err
	}
	return checks.Equal(bool(how), committed, "committed")
}

func (f franz) committed(group string, expected int64) error {
	admin, err := f.admin()
	if err != nil {
		return err
	}
	defer admin.Close()
	ctx, cancel := bounded()
	defer cancel()
	offsets, err := admin.FetchOffsets(ctx, group)
	if err != nil {
		return err
	}
	found, _ := offsets.Lookup(group, 0)
	return checks.Equal(expected, found.At, "committed offset")
}
