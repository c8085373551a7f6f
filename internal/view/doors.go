package view

import (
	"context"
	"time"
)

// Home is a screen's access to the machine: its teams.
type Home interface {
	// Teams calls each with a one-line summary of all teams, now and whenever a team or its
	// supervisor has changed, from one goroutine, until ctx ends. looks is as in Interest.
	Teams(ctx context.Context, looks <-chan bool, each func([]Glance)) error
	// Open opens a team by its name. It is closed with the screen.
	Open(ctx context.Context, name string) (Team, error)
}

// Team is a screen's access to one team. A screen has no other access to a ledger, process or
// file, so it cannot lose or change anything by itself.
type Team interface {
	Source
	Hands
	Screens
}

// Source reads a team.
type Source interface {
	// Follow calls each with a snapshot now, and whenever the team or its supervisor has changed,
	// from one goroutine, until ctx ends. It calls interest before each read.
	Follow(ctx context.Context, interest func() Interest, each func(Snapshot)) error
	// Request returns an approval request in full, answered or not.
	Request(ctx context.Context, approval int64) (Request, error)
	// Member returns details of a member and its work. It may take a moment, since it runs git.
	Member(ctx context.Context, name string) (MemberDetail, error)
	// Task returns a task in full.
	Task(ctx context.Context, id string) (TaskDetail, error)
	// TaskPage returns tasks that nobody works on, beside those of a snapshot.
	TaskPage(ctx context.Context, q TaskQuery) (TaskPage, error)
	// TaskNews returns what has become of tasks, and which others have changed, since an event.
	TaskNews(ctx context.Context, ids []string, since int64) (TaskNews, error)
	// Dependencies returns the ids that each task depends on.
	Dependencies(ctx context.Context) (map[string][]string, error)
	// Receipts returns the delivery state of messages for each recipient, see Done.Message.
	Receipts(ctx context.Context, messages string) ([]Receipt, error)
	// Near returns a task with those at most two dependencies away from it, as many as can be read on a screen.
	Near(ctx context.Context, id string) (Near, error)
	// Mail returns the newest threads, oldest first.
	Mail(ctx context.Context) ([]Message, error)
	// Usage returns the usage by member.
	Usage(ctx context.Context) (Usage, error)
	// Changes returns what a member has changed, and what was said about it. since is one of
	// Sinces.
	Changes(ctx context.Context, member, since string) (Changes, error)
	// Merges returns the merge lane, oldest first.
	Merges(ctx context.Context) ([]Merge, error)
	// TaskLog returns an attempt at a task with its output, the newest if attempt is 0.
	TaskLog(ctx context.Context, id string, attempt int) (TaskLog, error)
	// GateLog calls each with a merge and the last lines of what its gates have printed, now and after
	// every change, from one goroutine, until the merge has ended or ctx ends, which is not an error.
	GateLog(ctx context.Context, merge int64, each func(Merge, LogPart)) error
	// Timeline returns what members did in the current run.
	Timeline(ctx context.Context) (Timeline, error)
	// Log returns the newest events of a kind of LogKinds, in order. all includes those that people
	// need not read about, see Sentence.
	Log(ctx context.Context, kind string, all bool) ([]Event, error)
	// Drafts returns what the person has typed for actions and not sent, by Deed.Purpose.
	Drafts(ctx context.Context) (map[string]string, error)
}

// Sinces are what the changes of a member can be compared with: where its branch began, its
// last commit, the claim of its last task, the last comments that the person sent to it.
func Sinces() []string { return []string{"", "commit", "task", "review"} }

// SinceWords says what changes are compared with.
func SinceWords(since string) string {
	return map[string]string{"": "since its branch began", "commit": "not committed", "task": "since its last task", "review": "since your last review"}[since]
}

// Interest is the part of a team that is on a screen: the rest is not read.
type Interest struct {
	Tasks int // maximum number of tasks that are not in progress; 0: all
	// Looks receives true when a person looks at the screen, and false when nobody does: the
	// supervisor is then not asked by a clock whether it still answers. It is the same at each call;
	// nil: somebody may look.
	Looks <-chan bool
}

// Hands changes a team.
type Hands interface {
	// Do carries out a deed. Its errors are those of the operation, with a hint. An Action with
	// Terminal uses the terminal of the process.
	Do(ctx context.Context, d Deed) (Done, error)
	// Keep keeps the Text of a deed that is not sent yet, or no longer if it is empty: see
	// Source.Drafts. Do drops it when it succeeds.
	Keep(ctx context.Context, d Deed) error
	// Writable returns an error if nothing can be written to the team now. It writes something.
	Writable(ctx context.Context) error
	// PutOff puts a need off on every screen, for a time or, with 0, until it changes; see Need.Later.
	PutOff(ctx context.Context, n Need, d time.Duration) error
	// TakeUp ends that.
	TakeUp(ctx context.Context, n Need) error
}

// Done is the result of a Deed.
type Done struct {
	Said    string `json:"said"`              // a sentence; of a Preview, lines
	Seen    string `json:"seen,omitempty"`    // of a Preview; "" if there is nothing to do
	Message string `json:"message,omitempty"` // ids of the messages that were posted, with a comma between them
	Comment string `json:"comment,omitempty"` // name of the draft that was written
	Left    bool   `json:"-"`                 // the person is elsewhere now, and the screen in the way
}

// Deed is an action on a target, with the person's input.
type Deed struct {
	Action  string // ID of an Action
	Member  string // name
	Group   string // of the members that are written to, "worker-*"
	Task    string // id
	Message string // id
	Merge   int64
	// Approval is answered only while its Request has this Seen: an answer applies to what was
	// seen.
	Approval int64
	Seen     string
	// Preview says what an Action with Preview would do, and changes nothing. Its Seen is what
	// that was: the action is refused if it would do something else by now.
	Preview bool
	// A comment on the member's changes, or on the plan that Approval asks for: the file, the lines as "41" or "40-44", whether they
	// are those that it has removed, and the name of a comment that is there already.
	Path    string
	Lines   string
	Old     bool
	Comment string
	// Comments is how many comments on the plan go with its rejection.
	Comments int
	// Text is the input of the action, see Action.Asks.
	Text string
}

// Screens gives access to the screens of members.
type Screens interface {
	// Screen calls each with the content of a member's screen now and after every change, from one
	// goroutine, until ctx ends, which is not an error, or the member ends.
	Screen(ctx context.Context, member string, each func(Frame)) error
	// History returns the lines of a member's screen as a Frame has them, once, with what its
	// terminal keeps above them.
	History(ctx context.Context, member string) ([]string, error)
}

// Frame is the screen of a member: lines of text with only colours (SGR).
type Frame struct {
	Lines []string `json:"lines"`
	At    time.Time
	// Ended is why no more frames will come, "" while they may.
	Ended string
}
