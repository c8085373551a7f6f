package main

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// mistakes FILE: each line of FILE has an exit status, a command line, a part of its error and a
// part of its hint. Standard output must be empty.
func cmdMistakes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mistakes file")
	}
	var wrong []string
	for _, line := range strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 4 {
			ts.Fatalf("%q has %d cells", line, len(cells))
		}
		status := 0
		var exit *exec.ExitError
		if errors.As(ts.Exec("teamctl", strings.Fields(cells[1])...), &exit) {
			status = exit.ExitCode()
		}
		text, hint, _ := strings.Cut(ts.ReadFile("stderr"), "teamctl: hint: ")
		if strconv.Itoa(status) != cells[0] || !strings.Contains(text, cells[2]) || !strings.Contains(hint, cells[3]) || ts.ReadFile("stdout") != "" {
			wrong = append(wrong, line+"\n\texit status "+strconv.Itoa(status)+": "+text+"hint: "+hint+ts.ReadFile("stdout"))
		}
	}
	if len(wrong) > 0 {
		ts.Fatalf("%s", strings.Join(wrong, "\n"))
	}
}
