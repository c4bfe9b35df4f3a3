// Command login says whether a client comes in at a listener: CLIENT ADDRESS MECHANISM USER PASSWORD [CA]; the mechanism "-" is none,
// and the password of OAUTHBEARER is a token.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const patience = 4 * time.Second

func trusting(ca string) (*tls.Config, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

func withFranz(address, mechanism, user, password string, secure *tls.Config) error {
	options := []kgo.Opt{kgo.SeedBrokers(address), kgo.RetryTimeout(patience), kgo.RequestRetries(1)}
	if secure != nil {
		options = append(options, kgo.DialTLSConfig(secure))
	}
	switch mechanism {
	case "PLAIN":
		options = append(options, kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
	case "OAUTHBEARER":
		options = append(options, kgo.SASL(oauth.Auth{Token: password}.AsMechanism()))
	case "SCRAM-SHA-256":
		options = append(options, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha256Mechanism()))
	case "SCRAM-SHA-256 by token":
		options = append(options, kgo.SASL(scram.Auth{User: user, Pass: password, IsToken: true}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		options = append(options, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	limited, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return client.Ping(limited)
}

type token string

func (given token) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(given)}, nil
}

func withSarama(address, mechanism, user, password string, secure *tls.Config) error {
	config := sarama.NewConfig()
	config.Metadata.Retry.Max = 1
	config.Net.DialTimeout, config.Net.ReadTimeout = patience, patience
	if secure != nil {
		config.Net.TLS.Enable, config.Net.TLS.Config = true, secure
	}
	if mechanism != "-" {
		config.Net.SASL.Enable = true
		config.Net.SASL.Mechanism = sarama.SASLMechanism(mechanism)
		config.Net.SASL.User, config.Net.SASL.Password, config.Net.SASL.TokenProvider = user, password, token(password)
	}
	client, err := sarama.NewClient([]string{address}, config)
	if err != nil {
		return err
	}
	return client.Close()
}

func main() {
	var secure *tls.Config
	var err error
	if len(os.Args) > 6 {
		if secure, err = trusting(os.Args[6]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	login := map[string]func(string, string, string, string, *tls.Config) error{"franz-go": withFranz, "sarama": withSarama}
	if err := login[os.Args[1]](os.Args[2], os.Args[3], os.Args[4], os.Args[5], secure); err != nil {
		fmt.Println("refused:", err)
		return
	}
	fmt.Println("in")
}
