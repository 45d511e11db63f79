// Package terminal gives tests a pseudo-terminal, on which a program behaves as it does before a person. It works on Linux only.
package terminal
