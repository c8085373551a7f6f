package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// The second floor of claims: the same processes ask another for an answer of the
// same size over a socket, and nothing is behind it. On two cores waking each other
// up is the greater part of what a claim costs.

const (
	pongChild  = "pong"
	envPong    = "TEAMCTL_BENCH_PONG" // the socket of pong
	pingBytes  = 150                  // a claim as a frame
	pongBytes  = 260                  // and its answer
	pongWithin = 10 * time.Second
)

// pong answers until it is killed.
func pong() error {
	l, err := net.Listen("unix", os.Getenv(envPong))
	if err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			in, out := make([]byte, pingBytes), make([]byte, pongBytes)
			for {
				if _, err := io.ReadFull(conn, in); err != nil {
					return
				}
				if _, err := conn.Write(out); err != nil {
					return
				}
			}
		}()
	}
}

// childPing asks pong.
func childPing(ctx context.Context, a childArgs) (func() (time.Duration, bool, error), func() error, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", filepath.Join(a.Home, "p"))
	if err != nil {
		return nil, nil, err
	}
	in, out := make([]byte, pongBytes), make([]byte, pingBytes)
	return func() (time.Duration, bool, error) {
		if _, err := conn.Write(out); err != nil {
			return 0, false, err
		}
		_, err := io.ReadFull(conn, in)
		return 0, true, err
	}, conn.Close, nil
}

// pings is how many answers a second n processes get from one.
func pings(ctx context.Context, dir string, n int, span time.Duration) (perSecond float64, err error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	socket := filepath.Join(dir, "p")
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), envChild+"="+pongChild, envPong+"="+socket)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(pongWithin); ; <-tick.C {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Now().After(end) {
			return 0, fmt.Errorf("the process that answers does not come up: %w", err)
		}
	}
	res, err := crowd(ctx, "ping", n, childArgs{Home: dir, For: span})
	if err != nil {
		return 0, err
	}
	ops, _, _ := sum(res)
	return float64(ops) / span.Seconds(), nil
}
