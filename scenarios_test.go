package teamctl_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestScenariosAreTested: docs/scenarios.md has every scenario of the design, and each
// names the tests or scripts that show it.
func TestScenariosAreTested(t *testing.T) {
	text, err := os.ReadFile("docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("^(?:script `[a-z_]+`|`[a-z/]+` Test\\w+)$")
	var parts []int
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "## ") {
			parts = append(parts, 0)
		}
		cells := strings.Split(line, "|")
		if len(cells) != 5 || len(parts) == 0 {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue // the head of the table
		}
		if parts[len(parts)-1]++; n != parts[len(parts)-1] {
			t.Errorf("part %d: number %d stands at place %d", len(parts), n, parts[len(parts)-1])
		}
		for _, by := range strings.Split(cells[3], ";") {
			if !shown.MatchString(strings.TrimSpace(by)) {
				t.Errorf("%s: not understood", by)
			}
		}
	}
	if want := []int{11, 17, 19, 19, 18}; !slices.Equal(parts, want) {
		t.Errorf("the parts have %v scenarios, want %v", parts, want)
	}
}
