package view

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// NeedKind says what a person is needed for.
type NeedKind string

// Kinds of needs, in the order in which they are shown. Requests have the kinds of
// approvals: NeedPermission to NeedDelegation.
const (
	NeedPermission NeedKind = "permission"
	NeedPlan       NeedKind = "plan"
	NeedReview     NeedKind = "review"
	NeedDelegation NeedKind = "delegation"
	NeedDialog     NeedKind = "dialog"     // a question at the screen of a member's program
	NeedMember     NeedKind = "failed"     // a member that does not stay up
	NeedTask       NeedKind = "task"       // a failed task
	NeedStalled    NeedKind = "stalled"    // a member that works and shows nothing
	NeedMerge      NeedKind = "merge"      // a merge with conflicts or a failed gate
	NeedLimit      NeedKind = "limit"      // a provider that takes no more for now
	NeedBudget     NeedKind = "budget"     // most of a budget is used
	NeedHands      NeedKind = "nobody"     // tasks are ready and no member can take them
	NeedSupervisor NeedKind = "supervisor" // nobody stands behind what is shown
	NeedMail       NeedKind = "mail"       // unread messages
)

var needOrder = []NeedKind{
	NeedSupervisor, NeedPermission, NeedPlan, NeedReview, NeedDelegation, NeedDialog, NeedMember, NeedTask, NeedStalled,
	NeedMerge, NeedLimit, NeedBudget, NeedHands, NeedMail,
}

// Need is one thing that waits for a person. It goes when its cause goes.
type Need struct {
	Kind     NeedKind  `json:"kind"`
	Member   string    `json:"member,omitempty"`
	Task     string    `json:"task,omitempty"`     // its id
	Approval int64     `json:"approval,omitempty"` // of a request
	Text     string    `json:"text"`               // what is asked, or what is wrong
	Since    time.Time `json:"since,omitzero"`
	Command  string    `json:"command"` // that shows it, or leads there

	Question bool `json:"question,omitempty"` // a permission that asks for more than a yes or no
}

// Name is what the need is called in a list: "permission 3", "dialog".
func (n Need) Name() string {
	switch {
	case n.Approval != 0:
		return string(n.Kind) + " " + strconv.FormatInt(n.Approval, 10)
	case n.Task != "":
		return string(n.Kind) + " " + n.Task
	}
	return string(n.Kind)
}

// SortNeeds orders needs by kind, and by age within a kind, the oldest first.
func SortNeeds(list []Need) {
	slices.SortStableFunc(list, func(a, b Need) int {
		return cmp.Or(cmp.Compare(slices.Index(needOrder, a.Kind), slices.Index(needOrder, b.Kind)), a.Since.Compare(b.Since), cmp.Compare(a.Approval, b.Approval))
	})
}
