package tui

import (
	"fmt"
	"slices"
	"strings"
)

// KeyTable returns the table of the keys of the screen in Markdown, for docs/ui.md.
func KeyTable() string {
	var b strings.Builder
	b.WriteString("| key | what it does | where |\n|---|---|---|\n")
	for _, c := range commands() {
		keys := slices.Clone(c.keys)
		if c.id == "quit" {
			keys = append(keys, leaveKey)
		}
		for i, k := range keys {
			keys[i] = "`" + strings.ReplaceAll(k, "|", `\|`) + "`"
		}
		where := "everywhere"
		if in := onlyIn()[c.id]; in != nil {
			names := make([]string, len(in))
			for i, p := range in {
				names[i] = string(p)
			}
			where = strings.Join(names, ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(keys, " "), c.title, where)
	}
	return b.String()
}
