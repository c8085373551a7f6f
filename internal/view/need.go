package view

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// NeedKind is the reason why a person is needed.
type NeedKind string

// Kinds of needs, in display order. Requests have the kinds of approvals: NeedPermission to
// NeedDelegation.
const (
	NeedPermission NeedKind = "permission"
	NeedPlan       NeedKind = "plan"
	NeedReview     NeedKind = "review"
	NeedDelegation NeedKind = "delegation"
	NeedDialog     NeedKind = "dialog"     // a question at the screen of a member's program
	NeedMember     NeedKind = "failed"     // a member that does not stay up
	NeedTask       NeedKind = "task"       // a task that has failed, or without a Task: those that are not listed
	NeedStalled    NeedKind = "stalled"    // a working member without any sign
	NeedMerge      NeedKind = "merge"      // a merge with conflicts or a failed gate
	NeedLimit      NeedKind = "limit"      // a provider at a usage limit
	NeedBudget     NeedKind = "budget"     // a budget that is nearly used up
	NeedHands      NeedKind = "nobody"     // ready tasks that no member can take
	NeedSupervisor NeedKind = "supervisor" // no supervisor maintains the displayed state
	NeedMail       NeedKind = "mail"       // a message that may not reach its member
)

var needOrder = []NeedKind{
	NeedSupervisor, NeedPermission, NeedPlan, NeedReview, NeedDelegation, NeedDialog, NeedMember, NeedTask, NeedStalled,
	NeedMerge, NeedLimit, NeedBudget, NeedHands, NeedMail,
}

// Need is something that waits for a person. It disappears with its cause.
type Need struct {
	Kind     NeedKind  `json:"kind"`
	Member   string    `json:"member,omitempty"`
	Task     string    `json:"task,omitempty"`     // its id
	Approval int64     `json:"approval,omitempty"` // of a request
	Message  string    `json:"message,omitempty"`  // id of a message
	Text     string    `json:"text"`               // the request or the problem
	Since    time.Time `json:"since,omitzero"`
	Command  string    `json:"command"` // shows it, or leads to it

	Question bool `json:"question,omitempty"` // a permission that needs more than yes or no

	// Later: a person has put it off, until Until or, if that is zero, until it changes.
	Later bool      `json:"putOff,omitempty"`
	Until time.Time `json:"putOffUntil,omitzero"`
	// Cause has a hash of what a request says beyond Text, and of other needs what makes them different
	// ones though they have the same text.
	Cause string `json:"-"`
}

// ID identifies the need as long as it waits, whatever it says.
func (n Need) ID() string {
	id := "need:" + string(n.Kind) + ":" + n.Member + ":" + n.Task + ":" + strconv.FormatInt(n.Approval, 10)
	if n.Message != "" {
		id += ":" + n.Message
	}
	return id
}

// Seen returns a hash of what the need says: it changes with the request or the cause.
func (n Need) Seen() string {
	text := n.Text
	if n.Kind == NeedBudget { // it counts up
		text = ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", n.ID(), text, n.Cause, n.Since.UnixMilli()))
	return hex.EncodeToString(sum[:])
}

// PutOff reports whether the need is put off at a time.
func (n Need) PutOff(now time.Time) bool { return n.Later && (n.Until.IsZero() || now.Before(n.Until)) }

// OffWords says until when a need is put off.
func (n Need) OffWords() string {
	if n.Until.IsZero() {
		return "put off until it changes"
	}
	return "put off until " + n.Until.Local().Format("15:04")
}

// Waiting returns the needs that are not put off.
func Waiting(list []Need) []Need {
	return slices.DeleteFunc(slices.Clone(list), func(n Need) bool { return n.Later })
}

// Off returns the needs that are put off.
func Off(list []Need) []Need {
	return slices.DeleteFunc(slices.Clone(list), func(n Need) bool { return !n.Later })
}

// Name returns the name of the need in a list: "permission 3", "dialog".
func (n Need) Name() string {
	switch {
	case n.Approval != 0:
		return string(n.Kind) + " " + strconv.FormatInt(n.Approval, 10)
	case n.Task != "":
		return string(n.Kind) + " " + n.Task
	}
	return string(n.Kind)
}

// SortNeeds sorts needs by kind, and within a kind by age, oldest first; those that are put off come last.
func SortNeeds(list []Need) {
	slices.SortStableFunc(list, func(a, b Need) int {
		return cmp.Or(cmp.Compare(b2i(a.Later), b2i(b.Later)), cmp.Compare(slices.Index(needOrder, a.Kind), slices.Index(needOrder, b.Kind)), a.Since.Compare(b.Since), cmp.Compare(a.Approval, b.Approval))
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
