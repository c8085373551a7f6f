package look

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/memberlog"
	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

const (
	// logMost is how much of an output is shown, logScanned how much of a member's log is searched
	// for that of one attempt.
	logMost    = 256 << 10
	logScanned = 8 << 20
	// logEarly is how much earlier than the claim the search begins: the clocks of the ledger and of
	// the log's index differ by their rounding.
	logEarly = 2 * time.Second
)

// attempt is one attempt at a task, by its events.
type attempt struct {
	view.TaskLog
	events []ledger.Event
	failed string // the last lines of the failure that the ledger has
}

// attempts splits the history of a task. What precedes the first claim belongs to no attempt.
func attempts(id string, history []ledger.Event) (out []attempt) {
	for _, e := range history {
		var d struct {
			Attempt int           `json:"attempt"`
			Error   string        `json:"error"` // of a result
			Result  ledger.Result `json:"result"`
		}
		_ = json.Unmarshal(e.Data, &d) // an event without data still counts
		if e.What == team.EventTaskClaimed {
			out = append(out, attempt{TaskLog: view.TaskLog{Task: id, Attempt: cmp.Or(d.Attempt, len(out)+1), Owner: e.Who, From: stamp(e.At)}})
		}
		if len(out) == 0 {
			continue
		}
		a := &out[len(out)-1]
		a.events = append(a.events, e)
		end := ""
		switch e.What {
		case team.EventTaskCompleted:
			end = "completed"
		case team.EventTaskFailed:
			end, a.failed = "failed", d.Error
		case team.EventTaskRetrying:
			end, a.failed = "failed", d.Result.Error
		case team.EventTaskReleased, team.EventTaskDeleted:
			end = "released"
		case team.EventTaskSentBack:
			end = "sent back"
		}
		if end != "" && a.End == "" {
			a.End, a.To = end, stamp(e.At)
		}
	}
	for i := range out {
		for _, a := range out {
			out[i].Attempts = append(out[i].Attempts, a.Attempt)
		}
	}
	return out
}

// TaskLog returns an attempt at a task, the newest if number is 0, with the output that is left of
// it: what the ledger has of a failure, what a built-in worker printed, and the verification.
func TaskLog(ctx context.Context, t *tool.Team, id string, number int) (view.TaskLog, error) {
	history, err := t.History(ctx, id)
	if err != nil {
		return view.TaskLog{}, err
	}
	all := attempts(id, history)
	if len(all) == 0 {
		return view.TaskLog{Task: id, Attempts: []int{}, Events: []view.Event{}, Parts: []view.LogPart{}}, nil
	}
	at := len(all) - 1
	if number != 0 {
		if at = slices.IndexFunc(all, func(a attempt) bool { return a.Attempt == number }); at < 0 {
			return view.TaskLog{}, team.Errorf(team.CodeNotFound, "task %s has no attempt %d", id, number)
		}
	}
	a := all[at]
	a.Events = told(subjects{}, a.events, false)
	a.Parts = []view.LogPart{}
	if a.failed != "" {
		lines, cut := lastPart(a.failed)
		a.Parts = append(a.Parts, view.LogPart{Title: "WHY IT FAILED", Lines: lines, Cut: cut})
	}
	a.Parts = append(a.Parts, outputs(ctx, t, a.TaskLog)...)
	return a.TaskLog, nil
}

// outputs reads what an attempt has printed.
func outputs(ctx context.Context, t *tool.Team, a view.TaskLog) (out []view.LogPart) {
	printed := view.LogPart{Title: "OUTPUT", Lines: []string{}}
	verified := view.LogPart{Title: "VERIFICATION", Lines: []string{}}
	m, err := t.Member(ctx, a.Owner) // by a former name, too
	switch {
	case err != nil:
		printed.Missing = a.Owner + " has left, and its log with it"
		return []view.LogPart{printed}
	case !team.KindOf(m.Spec.Agent).Worker:
		printed.Missing = "what " + m.Name + " shows at its screen is not divided by task: teamctl logs " + m.Name
	default:
		lines, err := workerLines(t.Layout.Bundle(m.Name).Log(), a)
		switch {
		case err != nil:
			printed.Missing = err.Error()
		case lines == nil:
			printed.Missing = "the log of " + m.Name + " no longer has it"
		default:
			printed.Lines, printed.Cut = lastPart(strings.Join(lines, "\n"))
		}
	}
	out = append(out, printed)
	lines, err := verifyLines(t.Layout.Bundle(m.Name).VerifyLog(), a)
	if err != nil {
		verified.Missing = err.Error()
	}
	if verified.Lines, verified.Cut = lastPart(strings.Join(lines, "\n")); len(lines) > 0 || err != nil {
		out = append(out, verified)
	}
	return out
}

// workerLines returns what a built-in worker has printed during an attempt, nil if its log does
// not have it. The worker frames the output of each task by lines of its own.
func workerLines(path string, a view.TaskLog) (lines []string, err error) {
	log := memberlog.New(path)
	defer func() { err = errors.Join(err, log.Close()) }()
	switch err := log.StartSince(a.From.Add(-logEarly)); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(log, logScanned))
	if err != nil {
		return nil, err
	}
	return workerPart(strings.Split(plain.Text(string(data)), "\n"), a), nil
}

// workerPart returns the lines of an attempt: from the one by which the worker begins it to the
// last one about it before the worker begins another.
func workerPart(lines []string, a view.TaskLog) []string {
	begin := fmt.Sprintf("── task %s: ", a.Task)
	suffix := fmt.Sprintf(" (attempt %d)", a.Attempt)
	from := slices.IndexFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, begin) && (strings.HasSuffix(l, suffix) || a.Attempt == 1)
	})
	if from < 0 {
		return nil
	}
	to, end := len(lines), 0
	for i := from + 1; i < to; i++ {
		said, ours := strings.CutPrefix(lines[i], "── task ")
		switch id, _, ok := strings.Cut(said, " "); {
		case !ours || !ok:
		case strings.HasSuffix(id, ":"): // the next one
			to = i
		case id == a.Task:
			end = i + 1
		}
	}
	if end > 0 {
		to = end
	}
	return trimmed(lines[from:to])
}

// verifyLines returns the output of the verifications of an attempt.
func verifyLines(path string, a view.TaskLog) (out []string, err error) {
	for _, name := range []string{path + ".1", path} {
		text, err := readEnd(name, logScanned)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return out, err
		}
		out = append(out, trimmed(verifyPart(strings.Split(plain.Text(text), "\n"), a))...)
	}
	return out, nil
}

// verifyPart returns the lines of an attempt's verifications: from the line that begins each to the
// one that begins the next.
func verifyPart(lines []string, a view.TaskLog) (out []string) {
	mine := fmt.Sprintf("── task %s, attempt %d, ", a.Task, a.Attempt)
	in := false
	for _, l := range lines {
		switch {
		case strings.HasPrefix(l, mine):
			in = true
		case strings.HasPrefix(l, "── task ") && strings.Contains(l, ": verify $ "):
			in = false
		}
		if in {
			out = append(out, l)
		}
	}
	return out
}

// readEnd reads the last most bytes of a file.
func readEnd(name string, most int64) (text string, err error) {
	f, err := regular.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-most), most))
	return string(data), err
}

// lastPart returns the lines of a text, the last ones if it is long.
func lastPart(text string) (lines []string, cut bool) {
	text = strings.TrimRight(text, "\n ")
	if text == "" {
		return []string{}, false
	}
	if cut = len(text) > logMost; cut {
		_, text, _ = strings.Cut(text[len(text)-logMost:], "\n")
	}
	return strings.Split(plain.Clean(text), "\n"), cut
}

func trimmed(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
