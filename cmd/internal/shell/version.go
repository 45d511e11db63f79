package shell

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/lua"
)

// about describes this program.
type about struct {
	Type    string   `json:"type"`
	Program string   `json:"program"` // its version
	Commit  string   `json:"commit,omitempty"`
	Build   int      `json:"build"`   // of the functions
	Records []string `json:"records"` // versions
	Go      string   `json:"go"`
	// Platform is the system and the processor that it was built for.
	Platform string `json:"platform"`
}

// Version returns the command that prints the version of the program, and the versions that it works
// with.
func Version(program string) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version of this program, of its functions and of the records that it works with",
		Description: `Programs of different versions work on one namespace if they know the version of its records (curfew namespace ls).

    ` + program + ` version -o json`,
		Flags: []cli.Flag{app.FormatFlag()},
		Action: func(c *cli.Context) error {
			if _, err := app.Arguments(c, app.Nothing); err != nil {
				return err
			}
			is, err := aboutThis()
			if err != nil {
				return err
			}
			if app.InJSON(c) {
				return app.Failure(c, app.PrintLine(c, is))
			}
			_, err = fmt.Fprintf(c.App.Writer, "%s %s\ncommit %s\nfunctions build %d\nrecords version %s\n%s %s\n", program, is.Program,
				cmp.Or(is.Commit, "unknown"), is.Build, strings.Join(is.Records, ", "), is.Go, is.Platform)
			return app.Failure(c, err)
		},
	}
}

func aboutThis() (about, error) {
	facade, err := lua.LoadFacade(nil)
	if err != nil {
		return about{}, err
	}
	_, records, _ := lua.VersionsIn(facade.Text())
	is := about{Type: "version", Program: "(devel)", Build: facade.Build(), Records: records.Words(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if built, ok := debug.ReadBuildInfo(); ok {
		is.Program = cmp.Or(built.Main.Version, is.Program)
		for _, setting := range built.Settings {
			if setting.Key == "vcs.revision" {
				is.Commit = setting.Value
			}
		}
	}
	return is, nil
}
