// Reads a partition with franz-go as a client of one rack: some records, then, once a line says so, the rest.
//
//	rackreader SERVERS RACK TOPIC SOME ALL
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	topic, some, all := os.Args[3], number(os.Args[4]), number(os.Args[5])
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.Rack(os.Args[2]),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}),
		kgo.FetchMaxPartitionBytes(200_000),
		kgo.MetadataMinAge(100*time.Millisecond),
	)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	next := int64(0)
	readTo := func(end int64) {
		for next < end {
			fetches := client.PollFetches(ctx)
			if ctx.Err() != nil {
				panic(ctx.Err())
			}
			fetches.EachRecord(func(record *kgo.Record) {
				value := number(string(record.Value))
				if record.Offset != next || value != next {
					panic(fmt.Sprintf("offset %d with %d instead of %d", record.Offset, value, next))
				}
				next++
			})
		}
	}
	readTo(some)
	fmt.Println("some")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		panic(err)
	}
	readTo(all)
	fmt.Println("all in order")
}
