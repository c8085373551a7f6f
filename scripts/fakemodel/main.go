// Fakemodel serves the scripted model of the tests on loopback, for agent CLIs that
// run beside it.
//
//	go run ./scripts/fakemodel [-addr 127.0.0.1:0] [-log FILE]
//
// It prints its URL as the first line, writes every request as a line of JSON to
// FILE, and ends with its standard input.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/teamctl/teamctl/internal/fakemodel"
)

func main() {
	addr := flag.String("addr", "", "loopback `address` to serve on; a free port without")
	file := flag.String("log", "", "append the requests to `FILE`, one line of JSON each")
	flag.Parse()
	if err := run(*addr, *file); err != nil {
		fmt.Fprintln(os.Stderr, "fakemodel:", err)
		os.Exit(1)
	}
}

func run(addr, file string) error {
	var log func(fakemodel.Request)
	if file != "" {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		enc := json.NewEncoder(f)
		log = func(r fakemodel.Request) {
			if err := enc.Encode(r); err != nil {
				fmt.Fprintln(os.Stderr, "fakemodel:", err)
			}
		}
	}
	s, err := fakemodel.Start(addr, log)
	if err != nil {
		return err
	}
	fmt.Println(s.URL)
	_, err = io.Copy(io.Discard, os.Stdin)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return err
}
