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

// Sessions is what a turn needs of the ledger; *ledger.Ledger is one.
type Sessions interface {
	Session(ctx context.Context, key string) (ledger.Session, error)
	Entries(ctx context.Context, session string, after int64, limit int) ([]ledger.Entry, error)
	NewestEntry(ctx context.Context, session string, kind ledger.EntryKind) (e ledger.Entry, ok bool, err error)
	NoteTurn(ctx context.Context, n ledger.TurnNote) error
	Answered(ctx context.Context, a ledger.TurnAnswer) (ledger.Entry, error)
	BeginCall(ctx context.Context, ref ledger.TurnRef, callID string) (begun bool, err error)
	EndCalls(ctx context.Context, r ledger.TurnResults) ([]ledger.Entry, error)
	EndTurn(ctx context.Context, end ledger.TurnEnd) (ledger.EndedTurn, error)
}

// Setup is what one turn works with, decided when it begins.
type Setup struct {
	Model       model.Ref
	Provider    model.Provider
	Info        model.Info
	System      string // the same bytes in every turn, as long as the agent's spec is the same
	Tools       []Tool
	Temperature *float64
	Effort      string
	MaxOutput   int
	Rounds      int             // answers that a turn may have; 0 for 100
	Effective   json.RawMessage // what the job records of all this
	// Ephemeral is rendered for each request and stored nowhere; nil: nothing is.
	Ephemeral func(ctx context.Context) (string, error)
}

// Tool is one that the model may call in a turn. What policy and permission say is a part
// of Run.
type Tool struct {
	model.Tool
	// ReadOnly tools run beside each other, and again after a kill.
	ReadOnly bool
	// Run carries out a call. What the model did wrong is a failed Result; an error is a
	// fault of ours, which ends the turn, or the context's.
	Run func(ctx context.Context, c Call) (Result, error)
}

// Call is a call with what its tool may use of the turn.
type Call struct {
	model.Call
	Desk Desk
}

// Result is what came of a call.
type Result struct {
	Text   string
	Failed bool
	Note   string            // one line for the screen; "" for none
	Diff   string            // of an edit
	Paths  []string          // files that it changed
	File   string            // where the whole of a long text is
	Seen   map[string]string // hashes of files whose content the session knows now, by path
}

// Desk is what a turn has of the agent that runs it: its mail, its screen and what the
// team knows of it.
type Desk interface {
	// Look says what has come, and does nothing about it.
	Look(ctx context.Context) (Verdict, error)
	// Take takes in what has come, at a boundary without open calls. After Steered the
	// turn has ended, with token kept for later.
	Take(ctx context.Context, token Token) (Verdict, error)
	// Late is called before the commit of a last answer: what has come is for a later
	// turn, and who steers is told.
	Late(ctx context.Context) error
	// Allowed returns once the team lets the session ask its model.
	Allowed(ctx context.Context) error
	// Limited says that a limit of usage was reached, and returns when the session may ask
	// again.
	Limited(ctx context.Context, limit *team.LimitReached) error
	// Wait returns after the duration, or earlier if something has changed that it may
	// depend on. A member that waits for something of people is shown as that.
	Wait(ctx context.Context, d time.Duration, what team.WaitFor, why string) error
	// Pause shows that the turn waits for something of people, and gives its place in the
	// lane back; resume, which is to be called, ends both.
	Pause(ctx context.Context, what team.WaitFor, why string) (resume func(context.Context) error, err error)
	// Write carries out a write that is not cut short by the end of ctx, again and again
	// until the ledger has taken or refused it.
	Write(ctx context.Context, doing string, fn func(context.Context) error) error
	// Say streams text to the screen; Line writes a line of its own.
	Say(text string)
	Line(format string, args ...any)
}

// Verdict is what a boundary means for a turn.
type Verdict int

// The verdicts.
const (
	GoOn    Verdict = iota
	TookIn          // there are new entries
	Steered         // a message steers: the turn ends, or has ended
)

// Token is what is kept of a turn that a message has steered away from.
type Token struct {
	Task   string // what the turn was about
	Source string // the same for every turn of the same task: of several tokens the newest counts
	Rounds int    // answers so far
	Open   bool   // calls are open: only what steers can be taken in
}

// The causes that end a turn before its end. With any other cause the process ends, and
// the next one goes on with the turn.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrShutdown    = errors.New("shut down")
)

// Runner runs turns.
type Runner struct {
	Sessions Sessions
	// Resolve decides what a turn of the session works with. Its error ends the turn.
	Resolve func(ctx context.Context, s ledger.Session, turn ledger.ClaimedTurn) (Setup, error)
	// Texts keeps results that are too long for an entry; nil: everything stands in its
	// entry.
	Texts Texts
	// Jitter is the part of a pause that is waited, 0 to 1; nil is random.
	Jitter func() float64
}

// Texts keeps long texts outside of the ledger.
type Texts interface {
	// Keep writes a text of the session to a file that survives a power failure, and
	// returns the file's name.
	Keep(session, text string) (name string, err error)
	// Read returns the text in the file of that name.
	Read(name string) (string, error)
}

// Outcome is what became of a turn.
type Outcome struct {
	State  team.TurnState // "" when the process ends in the middle of it
	Failed string         // why it failed
}
