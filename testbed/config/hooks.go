package config

import (
	"fmt"
	"io"
	"strings"
	"text/template"

	"netsplit/model"
)

// HookVars is what a hook can name.
type HookVars struct {
	Host    string
	Address string // the host's ip
	Process string // of the target file; "" for reset
	// Command is the target file's command of the process, as a line for a shell.
	Command string
	Labels  map[string]string
	Run     string // id of the run
}

var hookFuncs = template.FuncMap{"quote": model.Quoted}

// ExpandHook fills a hook in: the line for sh.
func ExpandHook(text string, v HookVars) (string, error) {
	t, err := template.New("hook").Funcs(hookFuncs).Option("missingkey=error").Parse(text)
	if err != nil {
		return "", fmt.Errorf("hook %q: %w", text, err)
	}
	var b strings.Builder
	if err := t.Execute(&b, v); err != nil {
		return "", fmt.Errorf("hook %q: %w", text, err)
	}
	return b.String(), nil
}

func checkHooks(t *model.Testbed) (errs []error) {
	any := false
	for _, verb := range model.HookVerbs {
		text := t.Hooks.Of(verb)
		any = any || text != ""
		tmpl, err := template.New("hook").Funcs(hookFuncs).Parse(text)
		if err == nil {
			// Labels differ from host to host, so that only the names of fields are
			// checked here.
			err = tmpl.Execute(io.Discard, HookVars{Labels: map[string]string{}})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("hooks: %s: %w; known are .Host, .Address, .Process, .Command, .Labels, .Run and quote", verb.Hook(), err))
		}
	}
	switch h := t.Hooks; {
	case any && h.Start == "":
		errs = append(errs, fmt.Errorf("hooks: start is missing; with hooks, it starts the servers"))
	case any && h.Stop == "" && h.Crash == "":
		errs = append(errs, fmt.Errorf("hooks: neither stop nor crash; a run needs one of them to end its servers"))
	}
	if t.Hooks.Timeout < 0 {
		errs = append(errs, fmt.Errorf("hooks: timeout %v: write a time greater than 0, such as 30s", t.Hooks.Timeout))
	}
	return errs
}
