package view

import (
	"context"
	"time"
)

// Home is what a screen knows of the machine: which teams there are, and each of them.
type Home interface {
	// Teams calls each with all teams in one line each, now and after every change, from
	// one goroutine, until ctx ends.
	Teams(ctx context.Context, each func([]Glance)) error
	// Open opens a team by its name. What was opened is closed with the screen.
	Open(ctx context.Context, name string) (Team, error)
}

// Team is everything that a screen does with one team. A screen has no other way to a
// ledger, a process or a file, so that it can neither lose nor change anything by itself.
type Team interface {
	Source
	Hands
	Screens
}

// Source reads a team.
type Source interface {
	// Follow calls each with a snapshot now, and whenever the team or its supervisor has
	// changed, from one goroutine, until ctx ends. interest is asked before each look.
	Follow(ctx context.Context, interest func() Interest, each func(Snapshot)) error
	// Request reads an approval in full, answered or not.
	Request(ctx context.Context, approval int64) (Request, error)
	// Member reads what a member has done and left so far. It may take a moment: git is
	// asked.
	Member(ctx context.Context, name string) (MemberDetail, error)
	// Task reads a task in full.
	Task(ctx context.Context, id string) (TaskDetail, error)
	// Dependencies returns the ids that each task depends on.
	Dependencies(ctx context.Context) (map[string][]string, error)
	// Receipts returns how far a message has come, to each of its recipients.
	Receipts(ctx context.Context, message string) ([]Receipt, error)
	// Mail returns the newest conversations, the oldest first.
	Mail(ctx context.Context) ([]Message, error)
	// Usage returns what was used by whom.
	Usage(ctx context.Context) (Usage, error)
	// Changes returns what a member has changed against its base.
	Changes(ctx context.Context, member string) (Changes, error)
	// Merges returns the merge lane, the oldest first.
	Merges(ctx context.Context) ([]Merge, error)
}

// Interest is what of a team is on a screen: the rest is not read.
type Interest struct {
	Tasks int // tasks that nobody works on, at most; 0: all
}

// Hands changes a team.
type Hands interface {
	// Do does what a person has asked for. Its errors are those of the operation, with a
	// hint. An Action with Terminal uses the terminal of the process.
	Do(ctx context.Context, d Deed) (Done, error)
}

// Done is what came of a Deed.
type Done struct {
	Said    string `json:"said"`              // in a sentence
	Message string `json:"message,omitempty"` // id of the message that was posted
}

// Deed is one action on one thing, with what the person has typed for it.
type Deed struct {
	Action  string // ID of an Action
	Member  string // name
	Task    string // id
	Message string // id
	Merge   int64
	// Approval is answered only while its Request has this Seen: an answer is what was
	// seen.
	Approval int64
	Seen     string
	// Text is what the action asks for, see Action.Asks.
	Text string
}

// Screens shows the screens of members.
type Screens interface {
	// Screen calls each with what is on the screen of a member now, and whenever that has
	// changed, from one goroutine, until ctx ends, which is no error, or the member does.
	Screen(ctx context.Context, member string, each func(Frame)) error
}

// Frame is the screen of a member: lines of text with colours (SGR) and nothing else.
type Frame struct {
	Lines []string `json:"lines"`
	At    time.Time
	// Ended says why no more will come, "" while it may.
	Ended string
}
