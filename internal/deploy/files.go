package deploy

// Files returns the content of each file that is written, by its path in the folder deploy.
func Files(c Config) (map[string]string, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, write := range map[string]func() (string, error){
		"grafana/curfew.json":       func() (string, error) { return board(rows) },
		"prometheus/rules.yml":      func() (string, error) { return rules(alerts) },
		"prometheus/rules_test.yml": func() (string, error) { return plays(alerts, stories) },
	} {
		text, err := write()
		if err != nil {
			return nil, err
		}
		files[name] = c.adapt(text)
	}
	return files, nil
}
