package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"netsplit/api/wire"
	"netsplit/model"
)

func seconds(from time.Time, to *time.Time) string {
	if to == nil {
		return "0"
	}
	return fmt.Sprintf("%.3f", to.Sub(from).Seconds())
}

// tellGitHub prints an annotation for each cause, and appends a summary to the file that
// GitHub Actions names ("workflow commands" and "job summaries" in its documentation).
func (f *ciFlags) tellGitHub(out io.Writer, summary string, m made, found []wire.Finding, verdicts verdictCount) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### netsplit: %s on %s\n\n%s after %d runs (%s)", markdown(m.campaign.ID), markdown(madeOn(m.campaign.Spec)), m.campaign.State, m.campaign.Done, verdicts)
	if m.campaign.Reason != "" {
		fmt.Fprintf(&b, ": %s", markdown(m.campaign.Reason))
	}
	b.WriteString("\n\n")
	all := causes(found)
	if len(all) == 0 {
		b.WriteString("No findings.\n")
	} else {
		b.WriteString("| | finding | seen | replay |\n|---|---|---|---|\n")
	}
	for _, c := range all {
		x, level := c[0], "notice"
		switch {
		case f.counts(x.Target, x.Failure):
			level = "error"
		case f.known[knownKey(x.Target, x.Failure)]:
			level = "warning"
		}
		replay := m.replay(x.Run)
		fmt.Fprintf(out, "::%s title=%s::%s%%0Areplay: %s\n", level, property("netsplit: "+x.Failure.Check+" on "+x.Target), message(headline(x.Failure)), message(replay))
		fmt.Fprintf(&b, "| %s | %s | %s | <code>%s</code> |\n", map[string]string{"error": "**counts**", "warning": "in the baseline", "notice": cmp.Or(markdown(x.Class), "-")}[level],
			markdown(headline(x.Failure)), markdown(whenSeen(x, found)), markdown(replay))
	}
	for _, w := range m.campaign.Warnings {
		title := "netsplit: sign of a wrong target file"
		if w.Kind == model.WarnLate {
			title = "netsplit: a step that may not begin"
		}
		fmt.Fprintf(out, "::warning title=%s::%s%%0A%s\n", property(title), message(w.Text), message(w.Advice))
	}
	if summary == "" {
		return nil
	}
	w, err := os.OpenFile(summary, os.O_APPEND|os.O_CREATE|os.O_WRONLY, outputMode)
	if err == nil {
		_, err = io.WriteString(w, b.String())
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return fmt.Errorf("GITHUB_STEP_SUMMARY: %w", err)
	}
	return nil
}

// message and property escape text in a workflow command.
func message(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(characters(s))
}

func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(message(s))
}

// markdown escapes text in a table of GitHub's Markdown, which takes HTML, too.
func markdown(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "\\", "\\\\").Replace(model.OneLine(characters(s)))
}
