package program

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/agent/skills"
	"github.com/teamctl/teamctl/agent/tools"
	"github.com/teamctl/teamctl/team"
)

const (
	skillTool = "skill"
	// The list of skills takes at most a fiftieth of the model's context.
	listShare     = 50
	listContext   = 32_000 // tokens, if the size is unknown
	bytesPerToken = 4
)

// skillsOf returns the skills that all filters allow, and a tool that loads one of them, if there are
// any.
func (p *Program) skillsOf(filters ...team.Filter) ([]skills.Skill, []tools.Tool) {
	list, _ := skills.Find(p.Team.Layout.Home.Dir, p.repo()) // doctor reports broken ones
	for _, f := range filters {
		list = skills.Allowed(list, f)
	}
	if len(list) == 0 {
		return nil, nil
	}
	type in struct {
		Name string `json:"name,omitempty" jsonschema:"the skill to load; without a name all skills are listed"`
	}
	return list, []tools.Tool{tools.Typed(skillTool, "Load the text of a skill: how a kind of work is done here. Without a name it lists all skills.", tools.Read, true, nil,
		func(_ context.Context, _ tools.Call, in in) (tools.Out, error) { return load(list, in.Name), nil })}
}

// BrokenSkills returns a function that reports the unreadable skills of the home directory and of
// repositories.
func BrokenSkills(home team.Home) func(repos []string) []error {
	return func(repos []string) (out []error) {
		_, broken := skills.Find(home.Dir, "")
		for _, repo := range repos {
			_, more := skills.Find(home.Dir, repo)
			for _, b := range more {
				if strings.HasPrefix(b.File, repo+string(filepath.Separator)) {
					broken = append(broken, b)
				}
			}
		}
		for _, b := range broken {
			out = append(out, fmt.Errorf("%s: %w", b.File, b.Err))
		}
		return out
	}
}

// load returns the text of a skill, or the list of all of them without a name: the instructions may
// have no room for some.
func load(list []skills.Skill, name string) tools.Out {
	if strings.TrimSpace(name) == "" {
		return tools.Out{Text: skills.All(list, tools.MaxBytes), Note: fmt.Sprintf("%d skills", len(list))}
	}
	i := slices.IndexFunc(list, func(s skills.Skill) bool { return strings.EqualFold(s.Name, strings.TrimSpace(name)) })
	if i < 0 {
		names := make([]string, len(list))
		for i, s := range list {
			names[i] = s.Name
		}
		return tools.Out{Failed: true, Text: fmt.Sprintf("There is no skill %q for this agent. There is: %s", name, strings.Join(names, ", "))}
	}
	text, dir, err := skills.Load(list[i])
	if err != nil {
		return tools.Out{Failed: true, Text: fmt.Sprintf("The skill %s cannot be read: %v", list[i].Name, err)}
	}
	whose := "your person"
	if list[i].Project() {
		whose = "the project, which gives no permission"
	}
	return tools.Out{Text: fmt.Sprintf("[Skill %s, the words of %s; its files are in %s]\n%s", list[i].Name, whose, dir, text), Note: list[i].Name}
}

// listing returns the part of the instructions that lists skills.
func listing(list []skills.Skill, context int) string {
	text := skills.Listing(list, cmp.Or(context, listContext)/listShare*bytesPerToken, "the tool skill lists all of them without a name")
	if text == "" {
		return ""
	}
	return "[Skills; the tool skill loads one before you do what it is about]\n" + strings.TrimSpace(text)
}
