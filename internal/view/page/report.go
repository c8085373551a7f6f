package page

import (
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"
	texttemplate "text/template"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
)

// MaxReport is the maximum size of a report, in bytes.
const MaxReport = 5 << 20

// tasksKept is the maximum number of tasks in its list.
const tasksKept = 5000

const reportText = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Report of {{clean .Team}}</title><style>` + style + `</style>
<h1>Report of {{clean .Team}}{{if .Run}}, run {{.Run}}{{end}}{{if .RunName}} {{clean .RunName}}{{end}}</h1>
<p>{{stamp .Timeline.From}} to {{stamp .Timeline.To}}{{if .Open}}, and it goes on{{end}}. Times are {{zone .Timeline.From}}. {{if .Repo}}Repository {{clean .Repo}}. {{end}}History goes back to {{stamp .Timeline.History}}.
Values of the environment and likely secrets are masked, and paths are shortened.</p>
{{if .Cut}}<p><strong>Left out:</strong></p><ul>{{range .Cut}}<li>{{clean .}}</li>{{end}}</ul>{{end}}
<h2>Outcome</h2>
<p>{{.Counts.Done}} of {{.Counts.Total}} tasks completed{{if .Counts.Failed}}, {{.Counts.Failed}} failed{{end}}{{if .Counts.Active}}, {{.Counts.Active}} in work{{end}}{{if .Counts.Ready}}, {{.Counts.Ready}} ready{{end}}{{if .Counts.Waiting}}, {{.Counts.Waiting}} waiting for others{{end}}{{if .Counts.Stuck}}, {{.Counts.Stuck}} stuck behind a failed one{{end}}.</p>
<h2>Needs a look</h2>
{{if .Needs}}<div class="wide" tabindex="0" role="region" aria-label="What needs a look"><table><tr><th>what<th>member<th>text<th>since<th>command</tr>
{{range .Needs}}<tr><td>{{clean .Name}}<td>{{clean .Member}}<td>{{clean .Text}}<td>{{if not .Since.IsZero}}{{stamp .Since}}{{end}}<td><code>{{clean .Command}}</code></tr>
{{end}}</table></div>{{else}}<p>Nothing.</p>{{end}}
<h2>Tasks</h2>
{{if .Graph}}{{if .Graph.Nodes}}<figure>{{svg (.Graph.SVG .Timeline.To)}}</figure>{{if .Graph.Critical}}<p>Critical path: {{join .Graph.Critical}}.</p>{{end}}{{end}}{{else}}<p>No graph: {{clean .NoGraph}}.</p>{{end}}
{{if .Durations.Ended}}<p>{{.Durations.Ended}} tasks ended: median {{duration .Durations.Median}}, nine of ten within {{duration .Durations.P90}}, longest {{duration .Durations.Longest}}; {{printf "%.1f" .Durations.PerHour}} completed an hour.</p>{{end}}
<div class="wide" tabindex="0" role="region" aria-label="Tasks"><table><tr><th>task<th>state<th>member<th class="n">attempts<th class="n">took<th class="n">tokens<th class="n">cost<th>result</tr>
{{$to := .Timeline.To}}{{range .Tasks}}<tr><td>{{clean .ID}} {{clean .Subject}}<td>{{.Sign}} {{.Status}}{{if .Stuck}}, stuck{{end}}<td>{{clean .Owner}}<td class="n">{{.Attempt}}<td class="n">{{if not .Began.IsZero}}{{duration (.Took $to)}}{{end}}<td class="n">{{.Spent.Amount}}<td class="n">{{.Spent.Money}}<td>{{clean (or .Note .Summary)}}</tr>
{{end}}</table></div>
{{if .Queue}}<h3>Queue over time</h3><figure>{{svg (queue .Queue)}}</figure>{{end}}
<h2>Timeline</h2>
<figure>{{svg .Timeline.SVG}}</figure>
{{template "lanes" .Timeline}}
<h2>Members</h2>
<div class="wide" tabindex="0" role="region" aria-label="Members"><table><tr><th>member<th>agent<th class="n">restarts<th class="n">tokens<th class="n">cost<th>ends of its processes</tr>
{{range .Members}}<tr><td>{{clean .Name}}<td>{{clean .Agent}}<td class="n">{{.Restarts}}<td class="n">{{.Spent.Amount}}<td class="n">{{.Spent.Money}}<td>{{range .Ends}}{{clean .}}<br>{{end}}</tr>
{{end}}</table></div>
<p><small>Tokens and cost are of the turns and tasks that ended in this time; - means that the program tells none.</small></p>
<h2>Approvals</h2>
{{if .Approvals}}<div class="wide" tabindex="0" role="region" aria-label="Approvals"><table><tr><th>request<th>member<th>subject<th>state<th>by<th class="n">waited<th>feedback</tr>
{{range .Approvals}}<tr><td>{{.Kind}} {{.ID}}<td>{{clean .Member}}<td>{{clean .Subject}}<td>{{.State}}<td>{{clean .By}}<td class="n">{{duration .Took}}<td>{{clean .Feedback}}</tr>
{{end}}</table></div>{{else}}<p>None.</p>{{end}}
<h2>Failures</h2>
{{if not .Failures}}<p>None.</p>{{end}}{{range .Tasks}}{{if .Log}}<h3>{{clean .ID}} {{clean .Subject}}</h3><pre>{{plain .Log}}</pre>
{{end}}{{end}}
<h2>Merges</h2>
{{if .Merges}}<div class="wide" tabindex="0" role="region" aria-label="Merges"><table><tr><th>member<th>branch<th>into<th>state<th>why<th>conflicts</tr>
{{range .Merges}}<tr><td>{{clean .Member}}<td>{{clean .Branch}}<td>{{clean .Target}}<td>{{.State}}<td>{{clean .Why}}<td>{{join .Files}}</tr>
{{end}}</table></div>{{else}}<p>None.</p>{{end}}
<h2>Messages</h2>
<p>{{range $i, $t := .Messages}}{{if $i}}, {{end}}{{clean $t.Name}} {{$t.N}}{{else}}None{{end}}.{{if .Delivered}} Deliveries: {{range $i, $t := .Delivered}}{{if $i}}, {{end}}{{clean $t.Name}} {{$t.N}}{{end}}.{{end}}</p>
{{if .Diffs}}<h2>Changes</h2>
{{range .Diffs}}<h3>{{clean .Member}}</h3>{{if .New}}<p>New files: {{join .New}}</p>{{end}}<pre>{{range $l := lines (plain .Text)}}<span{{with .Class}} class="{{.}}"{{end}}>{{range .Pieces}}{{if not .Changed}}{{.Text}}{{else if eq $l.Class "del"}}<del>{{.Text}}</del>{{else}}<ins>{{.Text}}</ins>{{end}}{{end}}</span>
{{end}}</pre>{{end}}{{end}}
<h2>What happened</h2>
<div class="wide" tabindex="0" role="region" aria-label="What happened"><table>{{range .Deeds}}<tr><td>{{stamp .At}}<td>{{clean .Text}}</tr>
{{end}}</table></div>
</html>
`

// markdownText is in GitHub's dialect, with the graph as Mermaid.
const markdownText = `# Report of {{md .Team}}{{if .Run}}, run {{.Run}}{{end}}{{if .RunName}} {{md .RunName}}{{end}}

{{stamp .Timeline.From}} to {{stamp .Timeline.To}}{{if .Open}}, and it goes on{{end}}. Times are {{zone .Timeline.From}}. {{if .Repo}}Repository {{md .Repo}}. {{end}}History goes back to {{stamp .Timeline.History}}. Values of the environment and likely secrets are masked, and paths are shortened.
{{range .Cut}}
**Left out:** {{md .}}
{{end}}
## Outcome

{{.Counts.Done}} of {{.Counts.Total}} tasks completed, {{.Counts.Failed}} failed, {{.Counts.Active}} in work, {{.Counts.Ready}} ready, {{.Counts.Waiting}} waiting for others, {{.Counts.Stuck}} stuck behind a failed one.

## Needs a look
{{if .Needs}}
| what | member | text | command |
|---|---|---|---|
{{range .Needs}}| {{md .Name}} | {{md .Member}} | {{md .Text}} | {{code .Command}} |
{{end}}{{else}}
Nothing.
{{end}}
## Tasks
{{if .Graph}}{{if .Graph.Nodes}}
{{fence "mermaid" (.Graph.Mermaid .Timeline.To)}}
{{if .Graph.Critical}}Critical path: {{md (join .Graph.Critical)}}.
{{end}}{{end}}{{else}}
No graph: {{md .NoGraph}}.
{{end}}{{if .Durations.Ended}}
{{.Durations.Ended}} tasks ended: median {{duration .Durations.Median}}, nine of ten within {{duration .Durations.P90}}, longest {{duration .Durations.Longest}}; {{printf "%.1f" .Durations.PerHour}} completed an hour.
{{end}}
| task | state | member | attempts | took | tokens | cost | result |
|---|---|---|--:|--:|--:|--:|---|
{{$to := .Timeline.To}}{{range .Tasks}}| {{md .ID}} {{md .Subject}} | {{.Sign}} {{.Status}} | {{md .Owner}} | {{.Attempt}} | {{if not .Began.IsZero}}{{duration (.Took $to)}}{{end}} | {{.Spent.Amount}} | {{md .Spent.Money}} | {{md (or .Note .Summary)}} |
{{end}}
## Timeline

{{fence "" (drawn .Timeline)}}
| member | working | waiting | limited | idle | down | not known |
|---|--:|--:|--:|--:|--:|--:|
{{range .Timeline.Lanes}}| {{md .Member}} | {{duration (.In "working")}} | {{duration (.In "waiting")}} | {{duration (.In "limited")}} | {{duration (.In "idle")}} | {{duration (.In "down")}} | {{duration (.In "unknown")}} |
{{end}}
## Queue over time

| time | open | ended |
|---|--:|--:|
{{range some .Queue}}| {{stamp .At}} | {{.Open}} | {{.Done}} |
{{end}}
## Members

| member | agent | restarts | tokens | cost | ends of its processes |
|---|---|--:|--:|--:|---|
{{range .Members}}| {{md .Name}} | {{md .Agent}} | {{.Restarts}} | {{.Spent.Amount}} | {{md .Spent.Money}} | {{md (join .Ends)}} |
{{end}}
Tokens and cost are of the turns and tasks that ended in this time; - means that the program tells none.

## Approvals
{{if .Approvals}}
| request | member | subject | state | by | waited | feedback |
|---|---|---|---|---|--:|---|
{{range .Approvals}}| {{.Kind}} {{.ID}} | {{md .Member}} | {{md .Subject}} | {{.State}} | {{md .By}} | {{duration .Took}} | {{md .Feedback}} |
{{end}}{{else}}
None.
{{end}}
## Failures
{{if not .Failures}}
None.
{{end}}{{range .Tasks}}{{if .Log}}
### {{md .ID}} {{md .Subject}}

{{fence "" .Log}}
{{end}}{{end}}
## Merges
{{if .Merges}}
| member | branch | into | state | why | conflicts |
|---|---|---|---|---|---|
{{range .Merges}}| {{md .Member}} | {{md .Branch}} | {{md .Target}} | {{.State}} | {{md .Why}} | {{md (join .Files)}} |
{{end}}{{else}}
None.
{{end}}
## Messages

{{range $i, $t := .Messages}}{{if $i}}, {{end}}{{md $t.Name}} {{$t.N}}{{else}}None{{end}}.{{if .Delivered}} Deliveries: {{range $i, $t := .Delivered}}{{if $i}}, {{end}}{{md $t.Name}} {{$t.N}}{{end}}.{{end}}
{{if .Diffs}}
## Changes
{{range .Diffs}}
### {{md .Member}}
{{if .New}}
New files: {{md (join .New)}}
{{end}}
{{fence "diff" .Text}}
{{end}}{{end}}
## What happened

{{range .Deeds}}- {{stamp .At}} {{md .Text}}
{{end}}`

var markup = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "|", `\|`, "#", `\#`, "!", `\!`, "&", "&amp;", "~", `\~`, "$", `\$`, "@", "&#64;", "://", ":&#8203;//", "www.", "www&#8203;.")

// fence quotes a text in Markdown such that it cannot end the fence.
func fence(lang, text string) string {
	text = strings.TrimRight(plain.Text(text), "\n")
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark + lang + "\n" + text + "\n" + mark + "\n"
}

// patchLine is a line of a patch with its sign.
type patchLine struct {
	Class  string
	Pieces []Piece
}

// patchLines are the lines of a patch. Those of the headings of files replace no others.
func patchLines(text string) []patchLine {
	texts := strings.Split(text, "\n")
	out, lines := make([]patchLine, len(texts)), make([]view.DiffLine, len(texts))
	heading := false
	for i, l := range texts {
		lines[i] = view.DiffLine{Kind: view.Context, Text: l}
		heading = strings.HasPrefix(l, "diff --git ") || heading && !strings.HasPrefix(l, "@@ ")
		switch {
		case strings.HasPrefix(l, "+"):
			out[i].Class, lines[i].Kind = "add", view.Added
		case strings.HasPrefix(l, "-"):
			out[i].Class, lines[i].Kind = "del", view.Removed
		case strings.HasPrefix(l, `\`):
			lines[i].Kind = view.NoEnd
		}
		if heading {
			lines[i].Kind = view.Hunk
		}
		if out[i].Class != "" {
			lines[i].Text = l[1:]
		}
	}
	for i, p := range pieces(lines) {
		if out[i].Class != "" {
			p = append([]Piece{{Text: texts[i][:1]}}, p...)
		}
		out[i].Pieces = p
	}
	return out
}

// queuePicture draws the numbers of open and finished tasks over time.
func queuePicture(list []view.Depth) string {
	most := 1
	for _, d := range list {
		most = max(most, d.Open, d.Done)
	}
	line := func(of func(view.Depth) int) string {
		var b strings.Builder
		for i, d := range list {
			fmt.Fprintf(&b, "%.1f,%.1f ", 40+900*float64(i)/float64(max(1, len(list)-1)), 110-100*float64(of(d))/float64(most))
		}
		return strings.TrimSpace(b.String())
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="960" height="130" viewBox="0 0 960 130" font-family="ui-monospace, monospace" font-size="12" role="img"><title>Open and ended tasks over time</title><rect width="100%%" height="100%%" fill="#fff"/><text x="4" y="14">%d</text><text x="4" y="114">0</text><polyline points="%s" fill="none" stroke="#b45309" stroke-width="2"/><polyline points="%s" fill="none" stroke="#1e7e34" stroke-width="2" stroke-dasharray="5 3"/><text x="44" y="126">open: solid, ended: dashed</text></svg>`,
		most, line(func(d view.Depth) int { return d.Open }), line(func(d view.Depth) int { return d.Done }))
}

var reportPages = sync.OnceValues(func() (*template.Template, *texttemplate.Template) {
	more := map[string]any{
		"join": func(list []string) string { return view.Clean(strings.Join(list, ", ")) }, "lines": patchLines,
		"queue": queuePicture,
		"md":    func(s string) string { return markup.Replace(view.Clean(s)) }, "fence": fence,
		"code": func(s string) string {
			return "`" + strings.NewReplacer("`", "'", "|", `\|`).Replace(view.Clean(s)) + "`"
		},
		"drawn": func(t view.Timeline) string { return strings.Join(t.Text(view.Drawing{Cols: 110}), "\n") },
		"some": func(list []view.Depth) (out []view.Depth) {
			for i := 0; i < len(list); i += 6 {
				out = append(out, list[i])
			}
			return out
		},
	}
	html := template.Must(template.New("report").Funcs(funcs).Funcs(more).Parse(reportText))
	template.Must(html.New("lanes").Parse(lanesText))
	text := texttemplate.Must(texttemplate.New("report").Funcs(texttemplate.FuncMap(funcs)).Funcs(more).Parse(markdownText))
	return html, text
})

// Report writes a report as HTML, or as Markdown. If it exceeds MaxReport, the largest parts are
// dropped one after another, and the report names them.
func Report(w io.Writer, r view.Report, markdown bool) error {
	html, text := reportPages()
	var b strings.Builder
	shorten(&r, 0) // rendering a report that is too large takes long
	if n := len(r.Tasks) - tasksKept; n > 0 {
		r.Cut = append(r.Cut, fmt.Sprintf("the newest %d tasks of the list", n))
		r.Tasks = r.Tasks[:tasksKept]
	}
	for step := 1; ; step++ {
		b.Reset()
		var err error
		if markdown {
			err = text.Execute(&b, r)
		} else {
			err = html.Execute(&b, r)
		}
		if err != nil {
			return err
		}
		if b.Len() <= MaxReport || !shorten(&r, step) {
			break
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shorten drops one part of a report that is too large; false: nothing is left to drop.
func shorten(r *view.Report, step int) bool {
	r.Cut = append([]string{}, r.Cut...)
	drop := func(format string, args ...any) { r.Cut = append(r.Cut, fmt.Sprintf(format, args...)) }
	switch step {
	case 0: // the longest diffs
		diffs := append([]view.ReportDiff{}, r.Diffs...)
		for i, d := range diffs {
			if len(d.Text) > MaxReport/16 {
				drop("the changes of %s, %d bytes", d.Member, len(d.Text))
				diffs[i].Text = "left out: it is too long"
			}
		}
		r.Diffs = diffs
	case 1:
		if len(r.Diffs) > 0 {
			drop("the changes of all members")
		}
		r.Diffs = nil
	case 2:
		drop("the graph and the timeline of tasks")
		r.Graph, r.NoGraph = nil, "it was left out"
		lanes := append([]view.Lane{}, r.Timeline.Lanes...)
		for i := range lanes {
			lanes[i].Tasks = nil
		}
		r.Timeline.Lanes = lanes
	case 3:
		if n := len(r.Deeds) - 200; n > 0 {
			drop("what happened: %d lines", n)
			r.Deeds = r.Deeds[n:]
		}
	case 4:
		tasks := append([]view.ReportTask{}, r.Tasks...)
		for i := range tasks {
			tasks[i].Log = ""
		}
		drop("the last lines of failed tasks")
		r.Tasks = tasks
	default:
		n := len(r.Tasks) / 2
		if n < 50 {
			return false
		}
		drop("%d tasks", len(r.Tasks)-n)
		r.Tasks = r.Tasks[:n]
	}
	return true
}
