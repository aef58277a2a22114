package shell

import "strings"

// abs makes a path absolute without cleaning it: the file system resolves ".." after links, as Linux does.
func (p *proc) abs(name string) string {
	if name == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimSuffix(p.dir, "/") + "/" + name
}

// glob expands a field that is a pattern; one that matches nothing stays as it is.
func (p *proc) glob(f field) ([]string, error) {
	pat, magic := f.pattern()
	text := f.text()
	if !magic || p.opt.noglob {
		return []string{text}, nil
	}
	matches := []string{""}
	if strings.HasPrefix(pat, "/") {
		matches[0] = "/"
	}
	parts := strings.FieldsFunc(pat, func(r rune) bool { return r == '/' })
	for i, part := range parts {
		last := i == len(parts)-1
		next, err := p.globPart(matches, part, last)
		if err != nil {
			return nil, err
		}
		if len(next) == 0 {
			return []string{text}, nil
		}
		matches = next
	}
	if strings.HasSuffix(pat, "/") {
		for i := range matches {
			matches[i] += "/"
		}
	}
	return matches, nil
}

func (p *proc) globPart(dirs []string, part string, last bool) ([]string, error) {
	view := p.view()
	var next []string
	if !strings.ContainsAny(part, "*?[") {
		name := unquote(part)
		for _, dir := range dirs {
			if _, err := view.Lstat(p.abs(dir + name)); err == nil {
				next = append(next, dir+name+slashUnless(last))
			}
		}
		return next, nil
	}
	pat := compile(p.b(), part)
	size := 0
	for _, dir := range dirs {
		if err := p.b().step(); err != nil {
			return nil, err
		}
		entries, err := view.ReadDir(p.abs(dir + "."))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(part, ".") || !pat.match(e.Name()) {
				continue
			}
			if !last && !e.IsDir() {
				if info, err := view.Stat(p.abs(dir + e.Name())); err != nil || !info.IsDir() {
					continue
				}
			}
			next = append(next, dir+e.Name()+slashUnless(last))
			size += len(dir) + len(e.Name())
		}
		if err := p.b().text(size); err != nil {
			return nil, err
		}
		if len(next) > p.b().limits.Fields {
			return nil, p.b().fail(ErrFields)
		}
	}
	return next, nil
}

func slashUnless(last bool) string {
	if last {
		return ""
	}
	return "/"
}

func unquote(pat string) string {
	if !strings.Contains(pat, `\`) {
		return pat
	}
	var b strings.Builder
	for i := 0; i < len(pat); i++ {
		if pat[i] == '\\' && i+1 < len(pat) {
			i++
		}
		b.WriteByte(pat[i])
	}
	return b.String()
}
