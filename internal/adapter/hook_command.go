package adapter

import "strings"

// hookProgram has the programs that run hooks: teamctl, and the command of the small program that may
// stand before it, nil if there is none.
type hookProgram struct {
	exe   string
	small []string
}

func (in Input) hooks(exe string) hookProgram { return hookProgram{exe: exe, small: in.small} }

// command returns the shell command of a hook. The small program may be removed while the agent runs.
func (p hookProgram) command(cli, event string) string {
	run := quoted(p.exe) + " hook " + cli + " " + event
	if len(p.small) == 0 || !AnswersAtOnce(cli, event) {
		return run
	}
	words := make([]string, len(p.small))
	for i, w := range p.small {
		words[i] = quoted(w)
	}
	return "[ -x " + words[0] + " ] && exec " + strings.Join(words, " ") + " hook " + cli + " " + event + "; exec " + run
}

// quoted returns a word for any shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
