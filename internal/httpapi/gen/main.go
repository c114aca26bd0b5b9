// Command gen writes the OpenAPI document and the table of fault codes, as the program would serve them.
package main

import (
	"fmt"
	"log"
	"os"
	"strings"

	"onsale/internal/fault"
	"onsale/internal/httpapi"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: gen OPENAPI_FILE FAULTS_FILE")
	}
	doc, err := httpapi.OpenAPI("v1")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[1], doc, 0o644); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[2], faults(), 0o644); err != nil {
		log.Fatal(err)
	}
}

func faults() []byte {
	var b strings.Builder
	b.WriteString("# Fault codes\n\nGenerated from the catalogue, `internal/fault`. A code never changes its meaning. " +
		"*Repeat*: whether the same request,\nunchanged, may succeed later.\n\n| code | status | repeat | meaning | 含义 |\n|---|---|---|---|---|\n")
	for _, e := range fault.Catalogue {
		repeat := "no"
		if e.Retry {
			repeat = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s | %s |\n", e.Code, e.Status, repeat, e.En, e.Zh)
	}
	return []byte(b.String())
}
