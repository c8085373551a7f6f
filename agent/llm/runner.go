package llm

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Sessions is the part of the ledger that a turn uses; *ledger.Ledger implements it.
type Sessions interface {
	Session(ctx context.Context, key string) (ledger.Session, error)
	Entries(ctx context.Context, session string, after int64, limit int) ([]ledger.Entry, error)
	NewestEntry(ctx context.Context, session string, kind ledger.EntryKind) (e ledger.Entry, ok bool, err error)
	TurnSoFar(ctx context.Context, session string, job int64) (ledger.TurnSoFar, error)
	NoteTurn(ctx context.Context, n ledger.TurnNote) error
	Answered(ctx context.Context, a ledger.TurnAnswer) (ledger.Entry, error)
	BeginCall(ctx context.Context, ref ledger.TurnRef, callID string) (begun bool, err error)
	EndCalls(ctx context.Context, r ledger.TurnResults) ([]ledger.Entry, error)
	EndTurn(ctx context.Context, end ledger.TurnEnd) (ledger.EndedTurn, error)
}

// Setup is the configuration of one turn, determined when it begins.
type Setup struct {
	Model       model.Ref
	Provider    model.Provider
	Info        model.Info
	System      string // the same bytes in every turn, unless the agent's spec changes
	Tools       []Tool
	Temperature *float64
	Effort      string
	MaxOutput   int
	Rounds      int             // maximum number of answers in a turn, summaries included; 0 for 100
	Effective   json.RawMessage // recorded with the job
	// Reopen returns the provider of the model by the configuration as it is now; nil: it stays.
	Reopen func(ctx context.Context) (model.Provider, error)
	// Report returns the result of the turn when it ends; nil: none.
	Report func(ctx context.Context) json.RawMessage
	// Ephemeral is rendered for each request and not stored; nil: none.
	Ephemeral func(ctx context.Context) (string, error)
}

// Tool is a tool that the model may call in a turn. Run includes policy and permission checks.
type Tool struct {
	model.Tool
	// ReadOnly tools run concurrently, and are repeated after a kill.
	ReadOnly bool
	// Run carries out a call. A mistake of the model is a failed Result; an error is a fault of the
	// program, which ends the turn, or the context's.
	Run func(ctx context.Context, c Call) (Result, error)
}

// Call is a call with the parts of the turn that its tool may use.
type Call struct {
	model.Call
	Desk Desk
}

// Result is the result of a call.
type Result struct {
	Text   string
	Failed bool
	Note   string            // one line for the screen; "" for none
	Diff   string            // of an edit
	Paths  []string          // files that it changed
	File   string            // file with the whole of a long text
	Seen   map[string]string // hashes of files whose content the session knows now, by path
	// Decision is the rule, the mode or the approval by which the call was allowed or denied.
	Decision string
	// Collects are the keys of announces whose results it has.
	Collects []string
}

// Desk is a turn's access to the agent that runs it: its mail, its screen and its team.
type Desk interface {
	// Look reports the effect of unread mail without taking it in.
	Look(ctx context.Context) (Verdict, error)
	// Take takes in unread mail, at a boundary without open calls. After Steered the turn has
	// ended, with token kept for later.
	Take(ctx context.Context, token Token) (Verdict, error)
	// Late is called before the commit of a last answer, and after a summary: unread mail is for a
	// later turn, or steers this one at its next boundary, and senders of steering messages are
	// notified.
	Late(ctx context.Context) error
	// Allowed returns once the team permits the session to use its model.
	Allowed(ctx context.Context) error
	// Limited reports that a usage limit was reached, and returns when the session may use its
	// model again.
	Limited(ctx context.Context, limit *team.LimitReached) error
	// Wait returns after the duration. The member is shown as
	// waiting if it waits for people.
	Wait(ctx context.Context, d time.Duration, what team.WaitFor, why string) error
	// Pause shows that the turn waits for people, unless what is empty, and releases its place
	// in the lane; resume, which must be called, ends both.
	Pause(ctx context.Context, what team.WaitFor, why string) (resume func(context.Context) error, err error)
	// Claim returns what the commit of the turn's end is to claim; nil: nothing.
	Claim() *ledger.ClaimTurnIn
	// Write carries out a write regardless of the end of ctx, and retries until the ledger has
	// accepted or refused it.
	Write(ctx context.Context, doing string, fn func(context.Context) error) error
	// Say streams text to the screen; Line writes a separate line.
	Say(text string)
	Line(format string, args ...any)
}

// Verdict is the effect of a boundary on a turn.
type Verdict int

// Verdicts.
const (
	GoOn    Verdict = iota
	TookIn          // there are new entries
	Steered         // a steering message: the turn ends, or has ended
)

// Token is what is kept of a turn that a message has steered away from.
type Token struct {
	Task   string // subject of the turn
	Source string // the same for every turn of a task: the newest of several tokens counts
	Rounds int    // answers so far
	Open   bool   // calls are open: only a steering message can be taken in
	// Results are of calls that have ended since the last commit. TookIn and Steered mean that
	// they are committed.
	Results []ledger.CallResult
}

// Causes that end a turn early. With any other cause the process exits, and the next one continues
// the turn.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrShutdown    = errors.New("shut down")
)

// Runner runs turns.
type Runner struct {
	Sessions Sessions
	// Resolve determines the setup of a session's turn. Its error ends the turn.
	Resolve func(ctx context.Context, s ledger.Session, turn ledger.ClaimedTurn) (Setup, error)
	// Texts stores results and answers that are too long for an entry; nil: entries contain
	// everything.
	Texts Texts
	// Jitter returns the fraction of a pause to wait, 0 to 1; nil is random.
	Jitter func() float64

	between conversations
}

// Texts stores long texts outside the ledger.
type Texts interface {
	// Keep writes a text durably to a file and returns the file's name.
	Keep(text string) (name string, err error)
	// Read returns the text of the file with that name.
	Read(name string) (string, error)
}

// Outcome is the result of a turn.
type Outcome struct {
	State  team.TurnState // "" if the process exits during the turn
	Failed string         // why it failed
	// Next is the turn that the commit of the end has claimed; nil: none.
	Next *ledger.ClaimedTurn
}
