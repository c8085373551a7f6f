package team

import "strings"

// EdgeType says how two members of a team are meant to work with each other.
type EdgeType string

// The types of edges (row 256 of the requirements).
const (
	EdgeDelegates     EdgeType = "delegates"      // From hands work to To
	EdgeReviews       EdgeType = "reviews"        // From looks at what To has done
	EdgeReportsTo     EdgeType = "reports_to"     // From tells To how far it is
	EdgeSharesContext EdgeType = "shares_context" // From lets To know what it learns
	EdgeHandoff       EdgeType = "handoff"        // To goes on where From ends
)

// EdgeTypes lists them.
func EdgeTypes() []EdgeType {
	return []EdgeType{EdgeDelegates, EdgeReviews, EdgeReportsTo, EdgeSharesContext, EdgeHandoff}
}

// Edge is one arrow of the graph of a team. It grants nothing: what a member may do
// is its role's.
type Edge struct {
	From string   `json:"from"`
	Type EdgeType `json:"type"`
	To   string   `json:"to"`
}

// Check refuses a type that there is not and an edge of a member to itself. Errors:
// CodeInvalid.
func (e Edge) Check() error {
	known := false
	words := make([]string, 0, len(EdgeTypes()))
	for _, t := range EdgeTypes() {
		known = known || t == e.Type
		words = append(words, string(t))
	}
	if !known {
		return Errorf(CodeInvalid, "unknown type of edge %q", e.Type).WithHint("use one of " + strings.Join(words, ", "))
	}
	if strings.EqualFold(e.From, e.To) {
		return Errorf(CodeInvalid, "an edge leads from one member to another, not from %s to itself", e.From).WithReason(ReasonSelfLoop)
	}
	return nil
}
