package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Input is what a hook reads on standard input. Times are Unix milliseconds.
type Input struct {
	Event    Kind   `json:"hook_event_name" jsonschema:"what happened"`
	Team     string `json:"team_name" jsonschema:"the team"`
	Repo     string `json:"repo,omitempty" jsonschema:"the team's repository"`
	Cwd      string `json:"cwd" jsonschema:"where the hook runs: the repository, else the team's directory"`
	At       int64  `json:"at" jsonschema:"when, Unix milliseconds"`
	Teammate string `json:"teammate_name,omitempty" jsonschema:"the member that it is about: who is idle, exited, took the message, completes or creates the task"`
	AgentID  string `json:"agent_id,omitempty" jsonschema:"the member as NAME@TEAM"`
	Role     string `json:"role,omitempty" jsonschema:"the member's role"`
	Worktree string `json:"worktree,omitempty" jsonschema:"directory that the member works in"`
	Branch   string `json:"branch,omitempty" jsonschema:"branch that the member works on"`

	TaskID          string          `json:"task_id,omitempty" jsonschema:"TaskCompleted: the task"`
	TaskSubject     string          `json:"task_subject,omitempty" jsonschema:"TaskCreated, TaskCompleted"`
	TaskDescription string          `json:"task_description,omitempty" jsonschema:"TaskCreated, TaskCompleted"`
	TaskMetadata    json.RawMessage `json:"task_metadata,omitempty" jsonschema:"TaskCreated, TaskCompleted: the task's metadata, an object"`
	TaskResult      *ledger.Result  `json:"task_result,omitempty" jsonschema:"TaskCompleted: what the owner says of it"`

	Exit   string `json:"exit,omitempty" jsonschema:"TeammateExited: exit 0, signal SIGKILL or exit unknown"`
	Reason string `json:"exit_reason,omitempty" jsonschema:"TeammateExited: why, where that is known"`

	MessageID   string `json:"message_id,omitempty" jsonschema:"MessageAccepted: the message"`
	MessageKind string `json:"message_kind,omitempty" jsonschema:"MessageAccepted: its kind"`
	MessageFrom string `json:"message_from,omitempty" jsonschema:"MessageAccepted: who wrote it"`
	MessageText string `json:"message_text,omitempty" jsonschema:"MessageAccepted: its text"`
}

// About fills in what a hook is told of a member.
func (in *Input) About(m ledger.Member) {
	in.Teammate, in.AgentID, in.Role, in.Worktree, in.Branch = m.Name, m.AgentID, string(m.Role), m.Worktree, m.Branch
}

// Verdict is what the hooks say of one event.
type Verdict struct {
	Block    bool
	Feedback string // of a block
	Stop     bool   // the member is to be stopped
	Reason   string // of the stop
}

// Asker asks the hooks of one team.
type Asker struct {
	Layout team.Layout
	Ledger *ledger.Ledger
	// Env is the environment that hooks run in; nil: that of this process.
	Env []string
}

// Ask asks every hook of the event's kind, in order, until one blocks or stops:
// first the person's own, then the team's. What they say is in the ledger before it
// is returned. The error is of the configuration or the ledger, never of a hook.
func (a Asker) Ask(ctx context.Context, in Input) (Verdict, error) {
	own, supplied, err := a.hooks(ctx)
	if err != nil || len(own[in.Event])+len(supplied.Hooks[in.Event]) == 0 {
		return Verdict{}, err
	}
	row, err := a.Ledger.Team(ctx)
	if err != nil {
		return Verdict{}, err
	}
	in.Team, in.Repo, in.Cwd, in.At = a.Layout.Key, row.Repo, row.Repo, time.Now().UnixMilli()
	if in.Cwd == "" {
		in.Cwd = a.Layout.Dir
	}
	list := own[in.Event]
	if suppl := supplied.Hooks[in.Event]; len(suppl) > 0 {
		if supplied.Allowed() {
			list = append(list[:len(list):len(list)], suppl...)
		} else if err := a.tell(ctx, team.EventHookFailed, in, suppl[0].Command, "it came with the repository and nobody has allowed it as it is now: teamctl hooks allow"); err != nil {
			return Verdict{}, err
		}
	}
	for _, r := range list {
		v, err := a.one(ctx, r, in)
		if err != nil || v.Block || v.Stop {
			return v, err
		}
	}
	return Verdict{}, nil
}

// Has reports whether there may be a hook for a kind; it costs two reads.
func (a Asker) Has(ctx context.Context, k Kind) (bool, error) {
	own, supplied, err := a.hooks(ctx)
	return len(own[k])+len(supplied.Hooks[k]) > 0, err
}

func (a Asker) hooks(ctx context.Context) (Set, Supplied, error) {
	var s Supplied
	own, err := Load(a.Layout.Home)
	if err != nil {
		return nil, s, err
	}
	_, err = a.Ledger.Setting(ctx, Setting, &s)
	return own, s, err
}

// one asks one hook and writes down what it said.
func (a Asker) one(ctx context.Context, r Hook, in Input) (Verdict, error) {
	stdin, err := json.Marshal(in)
	if err != nil {
		return Verdict{}, fmt.Errorf("encode the input of a hook: %w", err)
	}
	out, err := runHook(ctx, run.BookOf(a.Layout), r, in, append(stdin, '\n'), a.Env)
	if ctx.Err() != nil {
		return Verdict{}, ctx.Err()
	}
	var failed *failure
	switch {
	case errors.As(err, &failed):
		return Verdict{}, a.tell(ctx, team.EventHookFailed, in, r.Command, failed.why)
	case err != nil:
		return Verdict{}, err
	case out.block:
		return Verdict{Block: true, Feedback: out.text}, a.tell(ctx, team.EventHookBlocked, in, r.Command, out.text)
	case out.stop:
		return Verdict{Stop: true, Reason: out.text}, a.tell(ctx, team.EventHookStop, in, r.Command, out.text)
	}
	return Verdict{}, nil
}

// Told is the data of the events hook.*.
type Told struct {
	Hook    Kind   `json:"hook"`
	Command string `json:"command"`
	Text    string `json:"text"` // the feedback, the reason, or how it failed
	Task    string `json:"task,omitempty"`
}

func (a Asker) tell(ctx context.Context, what string, in Input, command, text string) error {
	data, err := json.Marshal(Told{Hook: in.Event, Command: command, Text: text, Task: in.TaskID})
	if err != nil {
		return fmt.Errorf("encode event %s: %w", what, err)
	}
	_, err = a.Ledger.Event(ctx, ledger.Event{What: what, ID: in.Teammate, After: text, Data: data})
	return err
}
