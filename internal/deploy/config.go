package deploy

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/curfew-dev/curfew/metrics"
)

// Config adjusts the files. The zero value is right for the settings of a Curfew and a Prometheus that were not changed.
type Config struct {
	// Prefix is the prefix of all metrics. Defaults to metrics.DefaultPrefix.
	Prefix string
	// Keep lists labels that distinguish namespaces of the same name, such as env. They are set by the scrape configuration.
	Keep []string
}

var (
	validPrefix = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	validLabel  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	grouping    = regexp.MustCompile(`\b(by|on) \(namespace\b`)
)

// Check returns an error that says what to do if a field is not valid.
func (c Config) Check() error {
	if c.Prefix != "" && !validPrefix.MatchString(c.Prefix) {
		return fmt.Errorf("the prefix %q must be letters, digits and _, and begin with a letter or _", c.Prefix)
	}
	for _, label := range c.Keep {
		if !validLabel.MatchString(label) || label == "namespace" {
			return fmt.Errorf("the label %q must be letters, digits and _, begin with no digit, and not be namespace", label)
		}
	}
	return nil
}

// adapt changes the expressions in a text from the defaults to the configuration.
func (c Config) adapt(text string) string {
	if len(c.Keep) > 0 {
		text = grouping.ReplaceAllString(text, "$1 ("+strings.Join(c.Keep, ", ")+", namespace")
	}
	if c.Prefix != "" && c.Prefix != metrics.DefaultPrefix {
		text = metricName.ReplaceAllStringFunc(text, func(name string) string {
			return c.Prefix + strings.TrimPrefix(name, metrics.DefaultPrefix)
		})
	}
	return text
}
