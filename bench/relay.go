package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	creack "github.com/creack/pty"

	"github.com/teamctl/teamctl/backends/pty"
)

// relay: output of an agent through the holder of its terminal, with log and
// screen model, against a loop that reads a terminal and forgets.
var relay = benchmark{name: "relay", title: "PTY relay", run: runRelay}

const (
	goalRelay  = 0.8
	relayBytes = 64 << 20
)

func runRelay(ctx context.Context, e env) (_ string, err error) {
	size, rounds := relayBytes, 7
	if e.quick {
		size, rounds = relayBytes/4, 5
	}
	big := filepath.Join(e.dir, "big")
	text := bytes.Repeat([]byte(strings.Repeat("relayed ", 10)+"\n"), size/81)
	if err := os.WriteFile(big, text, 0o600); err != nil {
		return "", err
	}
	f, err := openFleet(e, pty.Name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	rate := func(d time.Duration) float64 { return float64(len(text)) / (1 << 20) / d.Seconds() }
	var bare, ours []float64
	for range rounds {
		d, err := bareRelay(ctx, big)
		if err != nil {
			return "", err
		}
		bare = append(bare, rate(d))
		began := time.Now()
		handles, _, err := f.up(ctx, 1, []string{"cat", big})
		if err == nil {
			select {
			case <-handles[0].Exited():
				ours = append(ours, rate(time.Since(began)))
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err == nil && !handles[0].Exit().Success() {
			err = fmt.Errorf("cat: %+v", handles[0].Exit())
		}
		if err = errors.Join(err, f.down(ctx, handles)); err != nil {
			return "", err
		}
	}
	return table(rounds, fmt.Sprintf("cat of %d MB; ours with start and exit.", len(text)>>20),
		[]figure{{"relay", "a Go loop that forgets", middle(bare), middle(ours), "MB/s", ratioAtLeast(goalRelay)}}), nil
}

func bareRelay(ctx context.Context, path string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, "cat", path)
	began := time.Now()
	t, err := creack.Start(cmd)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 32<<10)
	for {
		if _, err := t.Read(buf); err != nil {
			break // the end of a terminal is an error
		}
	}
	err = cmd.Wait()
	took := time.Since(began)
	return took, errors.Join(err, t.Close())
}
