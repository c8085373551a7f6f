package page

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
)

// TestWords checks that the page folds protocol messages, shows what a failed member has printed, leads
// from lost mail to the mail, says where no rule names a tool, and does not count what is put off.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    Doc
		want string
	}{
		{Doc{Kind: "mail", Body: []view.Message{{ID: "1", From: "ann", Said: "ann is idle", Text: "ann is idle\nand rests"}}}, "<details><summary>ann is idle</summary>"},
		{Doc{Kind: "member", Body: view.MemberDetail{Member: view.Member{Name: "ann"}, Output: []string{"start", "no such\x1bfile"}}}, "<pre>start\nno such\\x1bfile</pre>"},
		{Doc{Kind: "needs", Snapshot: view.Snapshot{Needs: []view.Need{{Kind: view.NeedMail, Member: "ann", Message: "m1"}}}}, `href="/t/demo/mail"><b>mail</b>`},
		{Doc{Kind: "needs", Snapshot: view.Snapshot{Needs: []view.Need{{Kind: view.NeedMail, Member: "ann", Later: true}}}}, `<h1>Nothing needs you</h1>`},
		{Doc{Kind: "needs", Snapshot: view.Snapshot{Needs: []view.Need{{Kind: view.NeedMail, Member: "ann", Later: true}}}}, `put off until it changes`},
		{Doc{Kind: "approval", Body: view.Request{ID: 1, Tool: "Bash", State: "pending", NoRule: true}}, "No rule of the team names the tool Bash."},
	} {
		c.d.Team, c.d.Part = "demo", true
		var b strings.Builder
		if err := Live(&b, c.d); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), c.want) {
			t.Errorf("%s has no %q:\n%s", c.d.Kind, c.want, b.String())
		}
	}
}
