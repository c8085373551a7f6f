// Command tally prints how often each word of a text occurs.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

// options is what the command line asks for.
type options struct {
	// top is how many words are printed.
	top int
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
}

// parse reads the flags.
func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("tally", flag.ContinueOnError)
	flags.IntVar(&o.top, "top", 10, "print the `N` most frequent words")
	err := flags.Parse(args)
	return o, err
}

// run is the command: in is the text, out gets the table.
func run(args []string, in io.Reader, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}

	entries := Count(Split(string(text)))
	if len(entries) > o.top {
		entries = entries[:o.top]
	}

	_, err = io.WriteString(out, Table(entries))
	return err
}
