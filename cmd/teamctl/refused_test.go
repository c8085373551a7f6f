package main

import (
	"encoding/json"
	"slices"

	"github.com/rogpeppe/go-internal/testscript"
)

// refused N REASON teamctl VERB ARGS...: the command exits with status N, and its error has the
// reason. A script that is about the refusal uses it instead of the error's sentence, which may be
// reworded. The error is in stdout, as JSON.
func cmdRefused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 || args[2] != "teamctl" {
		ts.Fatalf("usage: refused N reason teamctl verb...")
	}
	cmdExitcode(ts, false, slices.Concat(args[:1], args[2:4], []string{"--json"}, args[4:]))
	var doc struct {
		Error struct{ Reason string } `json:"error"`
	}
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &doc); err != nil {
		ts.Fatalf("%v: %s", err, ts.ReadFile("stdout"))
	}
	if doc.Error.Reason != args[1] {
		ts.Fatalf("reason %q, want %q", doc.Error.Reason, args[1])
	}
}
