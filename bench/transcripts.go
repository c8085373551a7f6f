package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
)

// transcripts: what a hook reads where the transcript of the program is the evidence.
var transcripts = benchmark{name: "transcripts", title: "Reading a transcript", run: runTranscripts, note: transcriptsNote}

const transcriptsNote = "The transcript of Claude Code is in memory: turns of a call each, whose result a hook has added mail to, and an answer. The floor " +
	"decodes the same lines once each. The time per line is compared with that of the shortest transcript."

const (
	goalTranscript       = 2.5 // x decoding its lines
	goalTranscriptGrowth = 1.3 // x the time per line of the shortest
)

// claudeTurns returns a transcript of so many lines.
func claudeTurns(lines int) []byte {
	var b bytes.Buffer
	text := strings.Repeat("the quick brown fox jumps over the lazy dog. ", 8)
	parent := ""
	line := func(i int, format string, args ...any) {
		id := fmt.Sprintf("u-%d", i)
		fmt.Fprintf(&b, `{"uuid":%q,"parentUuid":%q,"isSidechain":false,%s}`+"\n", id, parent, fmt.Sprintf(format, args...))
		parent = id
	}
	for i := range lines {
		switch i % 4 {
		case 0:
			line(i, `"type":"assistant","message":{"id":"m-%d","model":"a","role":"assistant","content":[{"type":"tool_use","id":"t-%d","name":"Bash","input":{"command":%q}}],"stop_reason":"tool_use"}`, i, i, text)
		case 1:
			line(i, `"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t-%d","content":%q}]}`, i-1, text)
		case 2:
			line(i, `"type":"attachment","attachment":{"type":"hook_additional_context","content":[%q]}`, text)
		default:
			line(i, `"type":"assistant","message":{"id":"m-%d","model":"a","role":"assistant","content":[{"type":"text","text":%q}],"stop_reason":"end_turn"}`, i, text)
		}
	}
	return b.Bytes()
}

// decode decodes each line.
func decode(data []byte) error {
	for line := range bytes.Lines(data) {
		var l struct {
			UUID, Type, ParentUUID string
			Message, Attachment    struct {
				ID, Model, Type string
				Content         json.RawMessage
			}
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("decode a line: %w", err)
		}
	}
	return nil
}

func runTranscripts(ctx context.Context, e env) (string, error) {
	sizes := []int{1_000, 4_000, 24_000}
	rounds := max(e.rounds/2, 10)
	if e.quick {
		sizes, rounds = []int{400, 4_000}, 5
	}
	all := make([][]byte, len(sizes))
	for i, n := range sizes {
		all[i] = claudeTurns(n)
	}
	bare, ours := make([][]float64, len(sizes)), make([][]float64, len(sizes))
	for r := range rounds {
		for k := range sizes {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			i := (k + r) % len(sizes)
			began := time.Now()
			if err := decode(all[i]); err != nil {
				return "", err
			}
			between := time.Now()
			if t := adapter.ReadTranscript(adapter.Claude, all[i]); !t.Answered || !t.Ended {
				return "", fmt.Errorf("the transcript of %d lines has no answer", sizes[i])
			}
			bare[i] = append(bare[i], millis(between.Sub(began)))
			ours[i] = append(ours[i], millis(time.Since(between)))
		}
	}
	var figures []figure
	for i, n := range sizes {
		figures = append(figures, figure{fmt.Sprintf("%d lines, %d kB", n, len(all[i])/1000), "decoding the lines", middle(bare[i]), middle(ours[i]), "ms", ratioAtMost(goalTranscript)})
	}
	perLine := func(i int) float64 { return 1000 * middle(ours[i]) / float64(sizes[i]) }
	last := len(sizes) - 1
	figures = append(figures, figure{fmt.Sprintf("a line of %d", sizes[last]), fmt.Sprintf("a line of %d", sizes[0]), perLine(0), perLine(last), "us", ratioAtMost(goalTranscriptGrowth)})
	return table(rounds, "Durations, one process.", figures), nil
}
