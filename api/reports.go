package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// noScript is the policy of a campaign's report, which has no script: none runs, and nothing
// is loaded. It is of this site, because a browser follows the links of another one without
// the page's cookie. What they open has a policy of its own.
const noScript = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"sandbox allow-same-origin allow-popups allow-popups-to-escape-sandbox"

type linkInput struct {
	IDParam
	Run string `path:"run" pattern:"^[a-z0-9-]{1,128}$"`
}

// campaignReportRoutes serve the reports of campaigns. Their links are relative, so that they
// work on the disk, too: RUN/report.html, and ../CAMPAIGN/report.html. From the report's
// address they lead to the routes that are hidden from the contract.
func (s *server) campaignReportRoutes() {
	report := operation(http.MethodGet, "/v1/campaigns/{id}/report", "get-campaign-report", "Get the report of a campaign; while it goes on, as far as it got", http.StatusOK)
	report.Responses = fileResponse("text/html")
	huma.Register(s.api, report, s.campaignReport)
	linked := operation(http.MethodGet, report.Path+".html", "get-linked-campaign-report", "", http.StatusOK)
	linked.Responses, linked.Hidden = report.Responses, true
	huma.Register(s.api, linked, s.campaignReport)
	run := operation(http.MethodGet, "/v1/campaigns/{id}/{run}/report.html", "get-linked-report", "", http.StatusOK)
	run.Responses, run.Hidden = report.Responses, true
	huma.Register(s.api, run, func(ctx context.Context, in *linkInput) (*huma.StreamResponse, error) {
		sum, err := s.Service.Run(ctx, in.Run)
		if err != nil {
			return nil, fromService(err)
		}
		if sum.Campaign != in.ID {
			return nil, newProblem(http.StatusNotFound, fmt.Sprintf("Run %s is of campaign %s: get /v1/runs/%s/report.", in.Run, sum.Campaign, in.Run))
		}
		return s.runFile(ctx, in.Run, "report.html")
	})
}

func (s *server) campaignReport(ctx context.Context, in *IDParam) (*huma.StreamResponse, error) {
	f, err := s.Service.CampaignReport(ctx, in.ID)
	if err != nil {
		return nil, fromService(err)
	}
	return serveUnder(f, RunFiles["report.html"], noScript)
}
