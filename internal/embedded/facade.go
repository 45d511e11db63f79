package embedded

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/curfew-dev/curfew/lua"
)

// serveFacade makes FCALL and FCALL_RO run the functions for programs in other languages.
// miniredis has no Functions, so each function runs as a script, and cannot be replaced.
func (s *Server) serveFacade() error {
	facade, err := lua.LoadFacade(nil)
	if err != nil {
		return err
	}
	srv := s.mini.Server()
	for _, command := range []string{"FCALL", "FCALL_RO"} {
		err := srv.Register(command, func(c *server.Peer, _ string, args []string) {
			switch {
			case len(args) < 2:
				c.WriteError(fmt.Sprintf("ERR wrong number of arguments for '%s' command", strings.ToLower(command)))
			case !slices.Contains(facade.Names(), args[0]):
				c.WriteError("ERR Function not found")
			case command == "FCALL_RO" && !facade.Reads(args[0]):
				c.WriteError("ERR Can not execute a script with write flag using *_ro command.")
			default:
				_, script, _ := strings.Cut(facade.Script(args[0]), "\n") // without the shebang
				srv.Dispatch(c, append([]string{"EVAL", script}, args[1:]...))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
