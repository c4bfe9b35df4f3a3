// A test of somebody who writes Go: starts the test broker, which the arguments name, and moves it over HTTP.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func must(holds bool, what string, seen any) {
	if !holds {
		check(fmt.Errorf("%s: %v", what, seen))
	}
}

// ask sends a request to the control endpoint; the status and what the answer says.
func ask(method, url string, body any) (int, map[string]any) {
	encoded, err := json.Marshal(body)
	check(err)
	request, err := http.NewRequest(method, url, bytes.NewReader(encoded))
	check(err)
	answer, err := http.DefaultClient.Do(request)
	check(err)
	defer answer.Body.Close()
	told := map[string]any{}
	check(json.NewDecoder(answer.Body).Decode(&told))
	return answer.StatusCode, told
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, os.Args[1], append(os.Args[2:], "--json", "--topic", "orders:1")...)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	check(err)
	output, err := command.StdoutPipe()
	check(err)
	check(command.Start())
	line, err := bufio.NewReader(output).ReadBytes('\n')
	check(err)
	var told struct{ Bootstrap, Control string }
	check(json.Unmarshal(line, &told))

	client, err := kgo.NewClient(kgo.SeedBrokers(told.Bootstrap), kgo.DefaultProduceTopic("orders"))
	check(err)
	check(client.ProduceSync(ctx, kgo.StringRecord("first")).FirstErr())
	_, fault := ask("POST", told.Control+"/faults", map[string]any{
		"kind": "drop", "api": "produce", "after_work": true, "times": 1,
	})
	check(client.ProduceSync(ctx, kgo.KeyStringRecord("alice", "once")).FirstErr())
	_, struck := ask("GET", fmt.Sprintf("%s/faults/%v", told.Control, fault["id"]), nil)
	must(struck["hits"] == 1.0, "the answer was lost once", struck)
	status, found := ask("POST", told.Control+"/expect", map[string]any{"topic": "orders", "count": 1, "key": "alice"})
	must(status == 200, "an idempotent producer wrote its record once", found)
	status, failed := ask("POST", told.Control+"/expect", map[string]any{"topic": "orders", "count": 9, "within": "50ms"})
	must(status == 417 && strings.Contains(failed["error"].(string), "expected 9 records"), "it fails", failed)
	ask("POST", told.Control+"/clock/advance", map[string]any{"by": "8 days"})
	status, _ = ask("POST", told.Control+"/expect", map[string]any{"topic": "orders", "count": 0})
	must(status == 200, "retention took them", status)
	client.Close()
	check(input.Close())
	check(command.Wait())
	fmt.Println("done")
}
