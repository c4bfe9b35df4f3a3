// Package checks is what the programs of all Go clients share: the plan, the report, and the course of the group checks.
package checks

import (
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Header is one header of a record.
type Header struct {
	Name  string
	Value []byte
}

// Sample is one record; a nil key or value is null.
type Sample struct {
	Timestamp  int64
	Key, Value []byte
	Headers    []Header
}

// Text shows everything that must come back.
func (s Sample) Text() string {
	text := fmt.Sprintf("%d %s %s", s.Timestamp, show(s.Key), show(s.Value))
	for _, header := range s.Headers {
		text += fmt.Sprintf(" %s=%x", header.Name, header.Value)
	}
	return text
}

// LookUp is a time and the offset of the first record at or after it, -1 when there is none.
type LookUp struct{ Timestamp, Offset int64 }

// Plan is what to write and what to look up.
type Plan struct {
	Samples []Sample
	LookUps []LookUp
}

func show(data []byte) string {
	if data == nil {
		return "-"
	}
	return hex.EncodeToString(data)
}

// readPlan reads the file that the test made: one tab-separated line each, headers as name=hex joined by commas.
func readPlan(path string) (plan Plan, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return plan, err
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		parts := strings.Split(line, "\t")
		if parts[0] == "lookup" {
			plan.LookUps = append(plan.LookUps, LookUp{number(parts[1]), number(parts[2])})
			continue
		}
		sample := Sample{Timestamp: number(parts[1]), Key: data(parts[2]), Value: data(parts[3])}
		for _, header := range strings.Split(parts[4], ",") {
			name, value, _ := strings.Cut(header, "=")
			sample.Headers = append(sample.Headers, Header{name, data(value)})
		}
		plan.Samples = append(plan.Samples, sample)
	}
	return plan, nil
}

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func data(text string) []byte {
	if text == "-" {
		return nil
	}
	value, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return value
}
