package checks

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Wait bounds everything that a check waits for.
const Wait = 30 * time.Second

// TwoDays is older than any bound of a test's topic.
const TwoDays = 48 * time.Hour

// Run is one program's work: where the broker is, the prefix of its topics, and the plan.
type Run struct {
	Address, Prefix string
	Plan            Plan
}

// Topic is the topic of a check.
func (r *Run) Topic(check string) string { return r.Prefix + "-" + check }

// Main runs the named checks (address, prefix, plan, checks...) and prints one line of JSON for each.
func Main(arguments []string, find func(run *Run, check string) func(topic string) error) {
	plan, err := readPlan(arguments[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	run := &Run{arguments[0], arguments[1], plan}
	for _, check := range arguments[3:] {
		detail := ""
		if err := guarded(find(run, check), run.Topic(check)); err != nil {
			detail = err.Error()
		}
		line, _ := json.Marshal(struct {
			Check  string `json:"check"`
			OK     bool   `json:"ok"`
			Detail string `json:"detail"`
		}{check, detail == "", detail})
		fmt.Println(string(line))
	}
}

// guarded bounds a check that hangs in the client and turns a panic into an error.
func guarded(check func(topic string) error, topic string) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if panicked := recover(); panicked != nil {
				done <- fmt.Errorf("panic: %v", panicked)
			}
		}()
		done <- check(topic)
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(2 * Wait):
		return fmt.Errorf("the check did not end within %s", 2*Wait)
	}
}

// Equal complains about a difference.
func Equal[T comparable](expected, found T, what string) error {
	if expected != found {
		return fmt.Errorf("%s: expected %v, found %v", what, expected, found)
	}
	return nil
}

// Same compares what was read with the samples.
func (r *Run) Same(read []Sample) error {
	if err := Equal(len(r.Plan.Samples), len(read), "records"); err != nil {
		return err
	}
	for at, expected := range r.Plan.Samples {
		if err := Equal(expected.Text(), read[at].Text(), fmt.Sprintf("record %d", at)); err != nil {
			return err
		}
	}
	return nil
}

// Await asks until it holds.
func Await(what string, held func() bool) error {
	for until := time.Now().Add(Wait); !held(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			return fmt.Errorf("never came about: %s", what)
		}
	}
	return nil
}
