package view

import (
	"cmp"
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
	NeedTask       NeedKind = "task"       // a task that has failed
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

// SortNeeds sorts needs by kind, and within a kind by age, oldest first.
func SortNeeds(list []Need) {
	slices.SortStableFunc(list, func(a, b Need) int {
		return cmp.Or(cmp.Compare(slices.Index(needOrder, a.Kind), slices.Index(needOrder, b.Kind)), a.Since.Compare(b.Since), cmp.Compare(a.Approval, b.Approval))
	})
}
