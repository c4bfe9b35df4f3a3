// Package testbroker starts `horolog test-broker` for a test, and stops it with the test.
package testbroker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync"
	"testing"
	"time"
)

const readyWithin = 30 * time.Second

// Options are those of the command; the zero value is a broker without topics.
type Options struct {
	Topics   map[string]int    // topics to create, with their partitions
	Settings map[string]string // settings of the broker, such as "log.retention.hours": "1"
	Clock    string            // stops the clock at this time, such as "2026-11-17 10:05"
	Registry bool              // whether a schema registry runs beside the broker
	Command  []string          // the command to run instead of "horolog"
}

// Broker is a running broker. It ends with Stop, and with this process at the latest.
type Broker struct {
	Bootstrap string `json:"bootstrap"`
	Control   string `json:"control"`
	Registry  string `json:"registry"`
	PID       int    `json:"pid"`

	input io.Closer
	ended chan struct{}
	once  sync.Once
}

// Start starts a broker and stops it when the test is over. The test fails if the broker does not start.
func Start(t testing.TB, options Options) *Broker {
	t.Helper()
	broker, err := Run(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Stop)
	return broker
}

// Run starts a broker without a test, such as in TestMain. The caller has to stop it.
func Run(options Options) (*Broker, error) {
	words := options.words()
	command := exec.Command(words[0], words[1:]...)
	var errs bytes.Buffer
	command.Stderr = &errs
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("the broker did not start: %w; install it with: pip install horolog", err)
	}
	broker := &Broker{input: input, ended: make(chan struct{})}
	late := time.AfterFunc(readyWithin, func() { _ = command.Process.Kill() })
	line, err := bufio.NewReader(output).ReadBytes('\n')
	late.Stop()
	go func() {
		_, _ = io.Copy(io.Discard, output)
		_ = command.Wait()
		close(broker.ended)
	}()
	if err == nil {
		err = json.Unmarshal(line, broker)
	}
	if err != nil {
		broker.Stop()
		return nil, fmt.Errorf("the broker did not start: %s", bytes.TrimSpace(errs.Bytes()))
	}
	return broker, nil
}

func (o Options) words() []string {
	words := append([]string{}, o.Command...)
	if len(words) == 0 {
		words = append(words, "horolog")
	}
	words = append(words, "test-broker", "--json")
	for name, partitions := range o.Topics {
		words = append(words, "--topic", fmt.Sprintf("%s:%d", name, partitions))
	}
	for key, value := range o.Settings {
		words = append(words, "--set", key+"="+value)
	}
	if o.Clock != "" {
		words = append(words, "--clock", o.Clock)
	}
	if o.Registry {
		words = append(words, "--registry")
	}
	return words
}

// Call sends a request to the control endpoint and decodes its JSON into found, unless that is nil.
func (b *Broker) Call(method, path string, body, found any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, b.Control+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var refused struct{ Error string }
		if err := json.NewDecoder(response.Body).Decode(&refused); err != nil {
			return err
		}
		return errors.New(refused.Error)
	}
	if found == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(found)
}

// Advance moves the broker's clock, and returns once everything due is done: Advance("3 days").
func (b *Broker) Advance(by string) error {
	return b.Call("POST", "/clock/advance", map[string]string{"by": by}, nil)
}

// Stop ends the broker and waits for its end.
func (b *Broker) Stop() {
	b.once.Do(func() { _ = b.input.Close() })
	<-b.ended
}
