package adapter

import (
	"os"
	"strings"
	"testing"
)

const (
	evidenceBegin = "<!-- evidence: adapter.EvidenceTable -->\n"
	evidenceEnd   = "<!-- end -->"
)

// docs/clients.md documents the guarantees of each program; -update rewrites it.
func TestEvidenceIsDocumented(t *testing.T) {
	const file = "../../docs/clients.md"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), evidenceBegin)
	old, tail, end := strings.Cut(rest, evidenceEnd)
	if !ok || !end {
		t.Fatalf("%s has no place for the table", file)
	}
	if old == EvidenceTable() {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the table; run go test ./internal/adapter -run TestEvidence -update", file)
	}
	if err := os.WriteFile(file, []byte(head+evidenceBegin+EvidenceTable()+evidenceEnd+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A text that fits is never longer than what a version shows its model whole.
func TestEvidencesHaveACap(t *testing.T) {
	for _, e := range Evidences() {
		if e.Counts == "" || e.Without == "" || (e.Server == "") == (len(e.Hooks) == 0) {
			t.Errorf("%+v", e)
		}
		for _, h := range e.Hooks {
			if h.Most <= 0 {
				t.Errorf("%s %s: %s has no cap", e.Agent, e.Versions, h.Event)
			}
		}
	}
}
