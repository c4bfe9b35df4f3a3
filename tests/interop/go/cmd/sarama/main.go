// The client sarama, unmodified, does the checks that the command line names; its first argument is the protocol level that it is set to.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
	"horolog.test/clients/checks"
)

// quiet is how long a partition must say nothing more before its records are counted.
const quiet = 700 * time.Millisecond

type client struct {
	*checks.Run
	version sarama.KafkaVersion
}

var codecs = map[string]sarama.CompressionCodec{
	"codec_none":   sarama.CompressionNone,
	"codec_gzip":   sarama.CompressionGZIP,
	"codec_snappy": sarama.CompressionSnappy,
	"codec_lz4":    sarama.CompressionLZ4,
	"codec_zstd":   sarama.CompressionZSTD,
}

var levels = map[string]sarama.KafkaVersion{
	"default": sarama.DefaultVersion,
	"max":     sarama.MaxVersion,
	"0.10.2":  sarama.V0_10_2_0,
}

func main() {
	level := levels[os.Args[1]]
	checks.Main(os.Args[2:], func(run *checks.Run, check string) func(string) error {
		c := client{run, level}
		if codec, ok := codecs[check]; ok {
			return func(topic string) error {
				return c.roundTrip(topic, func(config *sarama.Config) { config.Producer.Compression = codec })
			}
		}
		group := checks.Group{Produce: c.toFour, Join: c.join}
		return map[string]func(string) error{
			"idempotent":          func(topic string) error { return c.roundTrip(topic, idempotent) },
			"offsets_by_time":     c.offsetsByTime,
			"log_append_time":     c.logAppendTime,
			"too_old_refused":     c.tooOldRefused,
			"group_rebalance":     group.Rebalance,
			"group_resume":        group.Resume,
			"transactions":        c.transactions,
			"transaction_offsets": c.transactionOffsets,
			"admin_topics":        c.adminTopics,
			"admin_groups":        c.adminGroups,
		}[check]
	})
}

func idempotent(config *sarama.Config) {
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	config.Producer.Flush.MaxMessages = 5
}

func (c client) config(changes ...func(*sarama.Config)) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = c.version
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Return.Errors = true
	for _, change := range changes {
		change(config)
	}
	return config
}

func (c client) addresses() []string { return []string{c.Address} }

// samples leaves out what the level cannot say.
func (c client) samples(count int) []checks.Sample {
	samples := append([]checks.Sample{}, c.Plan.Samples[:count]...)
	if !c.version.IsAtLeast(sarama.V0_11_0_0) {
		for at := range samples {
			samples[at].Headers = nil
		}
	}
	return samples
}

func (c client) messages(topic string, count int) []*sarama.ProducerMessage {
	messages := make([]*sarama.ProducerMessage, count)
	for at, one := range c.samples(count) {
		message := &sarama.ProducerMessage{Topic: topic, Timestamp: time.UnixMilli(one.Timestamp)}
		if one.Key != nil {
			message.Key = sarama.ByteEncoder(one.Key)
		}
		if one.Value != nil {
			message.Value = sarama.ByteEncoder(one.Value)
		}
		for _, header := range one.Headers {
			message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
		}
		messages[at] = message
	}
	return messages
}

func (c client) produce(messages []*sarama.ProducerMessage, changes ...func(*sarama.Config)) error {
	producer, err := sarama.NewSyncProducer(c.addresses(), c.config(changes...))
	if err != nil {
		return err
	}
	defer producer.Close()
	return reason(producer.SendMessages(messages))
}

// reason is the error of the first message that failed.
func reason(err error) error {
	var failed sarama.ProducerErrors
	if errors.As(err, &failed) && len(failed) > 0 {
		return failed[0].Err
	}
	return err
}

func (c client) read(topic string, expected int, changes ...func(*sarama.Config)) ([]checks.Sample, error) {
	consumer, err := sarama.NewConsumer(c.addresses(), c.config(changes...))
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	var samples []checks.Sample
	for until := time.Now().Add(checks.Wait); time.Now().Before(until); {
		select {
		case message := <-partition.Messages():
			samples = append(samples, sample(message))
		case failed := <-partition.Errors():
			return nil, failed
		case <-time.After(quiet):
			if len(samples) >= expected {
				until = time.Now()
			}
		}
	}
	return samples, checks.Equal(expected, len(samples), "records")
}

func sample(message *sarama.ConsumerMessage) checks.Sample {
	one := checks.Sample{Timestamp: message.Timestamp.UnixMilli(), Key: message.Key, Value: message.Value}
	for _, header := range message.Headers {
		one.Headers = append(one.Headers, checks.Header{Name: string(header.Key), Value: header.Value})
	}
	return one
}

func (c client) roundTrip(topic string, change func(*sarama.Config)) error {
	sent := c.messages(topic, len(c.Plan.Samples))
	if err := c.produce(sent, change); err != nil {
		return err
	}
	for at, message := range sent {
		if err := checks.Equal(int64(at), message.Offset, "offset told to the producer"); err != nil {
			return err
		}
	}
	read, err := c.read(topic, len(sent))
	if err != nil {
		return err
	}
	for at, expected := range c.samples(len(sent)) {
		if err := checks.Equal(expected.Text(), read[at].Text(), fmt.Sprintf("record %d", at)); err != nil {
			return err
		}
	}
	return nil
}

func (c client) offsetsByTime(topic string) error {
	if err := c.produce(c.messages(topic, len(c.Plan.Samples))); err != nil {
		return err
	}
	asking, err := sarama.NewClient(c.addresses(), c.config())
	if err != nil {
		return err
	}
	defer asking.Close()
	for _, wanted := range c.Plan.LookUps {
		found, err := asking.GetOffset(topic, 0, wanted.Timestamp)
		if err != nil {
			return err
		}
		if err := checks.Equal(wanted.Offset, found, fmt.Sprintf("offset at %d", wanted.Timestamp)); err != nil {
			return err
		}
	}
	return nil
}

func (c client) logAppendTime(topic string) error {
	before := time.Now().UnixMilli()
	sent := c.messages(topic, 10)
	if err := c.produce(sent); err != nil {
		return err
	}
	read, err := c.read(topic, 10)
	if err != nil {
		return err
	}
	times := make([]int64, 0, 2*len(read))
	for at, one := range read {
		times = append(times, one.Timestamp, sent[at].Timestamp.UnixMilli())
	}
	for _, at := range times {
		if at < before || at > time.Now().UnixMilli() {
			return fmt.Errorf("append time %d", at)
		}
	}
	return nil
}

func (c client) tooOldRefused(topic string) error {
	message := func(at time.Time) []*sarama.ProducerMessage {
		return []*sarama.ProducerMessage{{Topic: topic, Timestamp: at, Value: sarama.StringEncoder("value")}}
	}
	if err := c.produce(message(time.Now().Add(-checks.TwoDays))); !errors.Is(err, sarama.ErrInvalidTimestamp) {
		return fmt.Errorf("a record of two days ago: %w", err)
	}
	if err := c.produce(message(time.Now())); err != nil {
		return err
	}
	_, err := c.read(topic, 1)
	return err
}

func (c client) toFour(topic string, count int) error {
	messages := make([]*sarama.ProducerMessage, count)
	for number := range messages {
		messages[number] = &sarama.ProducerMessage{Topic: topic, Partition: int32(number % 4), Value: sarama.StringEncoder("value")}
	}
	return c.produce(messages)
}

func (c client) transactional(topic string) (sarama.SyncProducer, error) {
	return sarama.NewSyncProducer(c.addresses(), c.config(idempotent, func(config *sarama.Config) {
		config.Producer.Transaction.ID = topic
	}))
}

func (c client) transactions(topic string) error {
	producer, err := c.transactional(topic)
	if err != nil {
		return err
	}
	defer producer.Close()
	for _, end := range []func() error{producer.CommitTxn, producer.AbortTxn, producer.CommitTxn} {
		if err := producer.BeginTxn(); err != nil {
			return err
		}
		if err := reason(producer.SendMessages(c.messages(topic, 50))); err != nil {
			return err
		}
		if err := end(); err != nil {
			return err
		}
	}
	if _, err := c.read(topic, 100, isolation(sarama.ReadCommitted)); err != nil {
		return fmt.Errorf("read_committed: %w", err)
	}
	if _, err := c.read(topic, 150, isolation(sarama.ReadUncommitted)); err != nil {
		return fmt.Errorf("read_uncommitted: %w", err)
	}
	return nil
}

func isolation(level sarama.IsolationLevel) func(*sarama.Config) {
	return func(config *sarama.Config) { config.Consumer.IsolationLevel = level }
}

// transactionOffsets sends an offset in a transaction that commits and another in one that aborts.
func (c client) transactionOffsets(topic string) error {
	producer, err := c.transactional(topic)
	if err != nil {
		return err
	}
	defer producer.Close()
	for _, step := range []struct {
		offset int64
		end    func() error
	}{{7, producer.CommitTxn}, {40, producer.AbortTxn}} {
		if err := producer.BeginTxn(); err != nil {
			return err
		}
		if err := reason(producer.SendMessages(c.messages(topic, 50))); err != nil {
			return err
		}
		offsets := map[string][]*sarama.PartitionOffsetMetadata{topic: {{Partition: 0, Offset: step.offset, LeaderEpoch: -1}}}
		if err := producer.AddOffsetsToTxn(offsets, topic); err != nil {
			return err
		}
		if err := step.end(); err != nil {
			return err
		}
	}
	admin, err := sarama.NewClusterAdmin(c.addresses(), c.config())
	if err != nil {
		return err
	}
	defer admin.Close()
	return checkCommitted(admin, topic, 0, 7)
}
