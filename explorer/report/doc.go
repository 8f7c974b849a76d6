// Package report writes what a run or a campaign showed as one HTML file.
//
// A report is a function of its Input: equal input gives equal bytes. It opens
// anywhere without a network (Content-Security-Policy default-src 'none'),
// reads without script from top to bottom (words, a space-time picture drawn
// here as SVG, lanes of variables, operations, decisions), and carries a
// table of all messages to search in.
//
// Nearly every string in it comes from a target, its documentation or its
// payload bytes and is hostile until escaped: text reaches the page through
// html/template or the escaping SVG writer in svg.go, never as markup.
//
// Open first: report.go (what goes in, what comes out), then words.go,
// timeline.go (which messages the picture shows) and picture.go (how).
package report
