package adapter

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/teamctl/teamctl/team"
)

// Custom is a user-defined agent kind, from $TEAMCTL_HOME/agents/<name>.yaml.
//
// In launch, resume and env these placeholders are replaced by the member's values: {prompt},
// {model}, {mode}, {name}, {team}, {dir}, {bundle}, {mcp} (the file that registers teamctl's
// tools), {conversation}. An argument that consists of one placeholder with an empty value is
// omitted, together with the flag before it.
type Custom struct {
	Name        string            `yaml:"-"`
	Description string            `yaml:"description"`
	Launch      []string          `yaml:"launch"`
	Resume      []string          `yaml:"resume"`
	Version     []string          `yaml:"version"` // arguments that print the version
	Env         map[string]string `yaml:"env"`
	Mail        Way               `yaml:"mail"` // typing (default) or pull
	Asks        bool              `yaml:"asks"` // it answers shutdown requests
	Ready       []string          `yaml:"ready"`
	Busy        []string          `yaml:"busy"`
	Waiting     []Rule            `yaml:"waiting"`
	Input       string            `yaml:"input"`
	Empty       []string          `yaml:"empty"`
	Enter       Enter             `yaml:"enter"`
}

var customName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`) })

// ParseCustom parses one file. Errors are CodeInvalid (bad_agent) with the file, line and column.
func ParseCustom(file string, data []byte) (Custom, error) {
	bad := func(format string, args ...any) error {
		return team.Errorf(team.CodeInvalid, "read %s: %s", file, fmt.Sprintf(format, args...)).WithReason(team.ReasonBadAgent)
	}
	c := Custom{Name: strings.TrimSuffix(path.Base(file), ".yaml")}
	if !customName().MatchString(c.Name) {
		return c, bad("the name of an agent is [a-z0-9_-], at most 32 characters, not %q", c.Name)
	}
	if _, err := Lookup(c.Name); err == nil {
		return c, bad("%q is an agent of teamctl's own", c.Name)
	}
	if err := yaml.UnmarshalWithOptions(data, &c, yaml.Strict()); err != nil {
		return c, bad("%s", yamlError(err))
	}
	if len(c.Launch) == 0 || c.Launch[0] == "" {
		return c, bad("launch is missing: the program and its arguments")
	}
	if c.Mail == "" {
		c.Mail = WayTyping
	}
	if c.Mail != WayTyping && c.Mail != WayPull {
		return c, bad("mail is typing or pull, not %q", c.Mail)
	}
	for _, list := range [][]string{c.Launch, c.Resume} {
		for _, a := range list {
			for _, m := range word().FindAllString(a, -1) {
				if _, ok := (words(Input{}, ""))[m]; !ok {
					return c, bad("unknown word %s", m)
				}
			}
		}
	}
	r := c.Rules()
	if err := r.compile(); err != nil {
		return c, bad("%v", err)
	}
	if c.Mail == WayTyping && c.Input == "" {
		return c, bad("mail: typing needs input, the pattern of the input box: nothing is typed over a half-typed line")
	}
	return c, nil
}

// Rules returns the screen patterns of the file.
func (c Custom) Rules() *Rules {
	r := &Rules{Agent: c.Name, Input: c.Input, Empty: c.Empty, Enter: c.Enter}
	for _, w := range c.Waiting {
		w.State = string(team.Waiting)
		r.List = append(r.List, w)
	}
	for i, p := range c.Busy {
		r.List = append(r.List, Rule{ID: fmt.Sprintf("busy-%d", i+1), State: string(team.Working), Match: []string{p}, Bottom: 20})
	}
	for i, p := range c.Ready {
		r.List = append(r.List, Rule{ID: fmt.Sprintf("ready-%d", i+1), State: string(team.Idle), Match: []string{p}, Bottom: 20, Ready: true})
	}
	_ = r.compile() // ParseCustom has reported any error
	return r
}

func (c Custom) kind() kind {
	caps := genericCaps
	caps.Ways = []Way{c.Mail}
	caps.Config = "the person's own file"
	if len(c.Resume) > 0 {
		caps.Conversation = "minted, resumed by its own arguments"
	}
	return kind{
		info: Info{Name: c.Name, Description: c.Description, AnswersShutdown: c.Asks, NeedsModel: true, TakesArgs: true, Custom: true},
		cli:  &cli{program: c.Launch[0], versionArgs: c.Version, plan: c.plan, caps: caps},
	}
}

func (c Custom) plan(exe string, in Input, _ Version) (launch, error) {
	l := launch{
		link:  Link{Ways: []Way{c.Mail}, Conversation: in.Mint.Conversation},
		env:   map[string]string{EnvMCPConfig: bundleFile(in, "mcp.json")},
		files: []File{{"mcp.json", mcpFile(exe, in), 0o600}},
	}
	if c.Mail == WayTyping {
		l.link.Ways = []Way{WayTyping}
	}
	args := c.Launch
	if in.Resume != "" && len(c.Resume) > 0 {
		args, l.link.Conversation, l.link.Resumed = c.Resume, in.Resume, true
	}
	vars := words(in, l.link.Conversation)
	for _, a := range args {
		if v, ok := vars[a]; ok && v == "" {
			if n := len(l.argv); n > 1 && strings.HasPrefix(l.argv[n-1], "-") {
				l.argv = l.argv[:n-1]
			}
			continue
		}
		l.argv = append(l.argv, word().ReplaceAllStringFunc(a, func(w string) string { return vars[w] }))
	}
	l.argv = append(l.argv, in.Command...)
	for k, v := range c.Env {
		l.env[k] = word().ReplaceAllStringFunc(v, func(w string) string { return vars[w] })
	}
	return l, nil
}

var word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{[a-z]+\}`) })

func words(in Input, conversation string) map[string]string {
	mode := string(in.Mode)
	if in.Plan {
		mode = string(team.ModePlan)
	}
	return map[string]string{
		"{prompt}": firstPrompt(in), "{model}": in.Model, "{mode}": mode, "{name}": in.Name, "{team}": in.Team,
		"{dir}": in.Dir, "{bundle}": string(in.Layout.Bundle(in.Name)), "{mcp}": bundleFile(in, "mcp.json"),
		"{conversation}": conversation,
	}
}
