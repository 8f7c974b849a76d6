package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"netsplit/api/wire"
)

// UploadTarget uploads a target, a tar archive of its folder. A campaign names it
// as the answer does.
func (c *Client) UploadTarget(ctx context.Context, archive []byte) (wire.Target, error) {
	var out wire.Target
	res, err := c.open(ctx, http.MethodPost, "/v1/targets", archive, http.Header{"Content-Type": {"application/x-tar"}})
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("client: upload a target: answer: %w", err)
	}
	return out, nil
}

// Targets lists the targets that a campaign can name: those that come with netsplit, and uploads.
func (c *Client) Targets(ctx context.Context) ([]wire.Target, error) {
	out, err := get[wire.Targets](ctx, c, "/v1/targets")
	return out.Items, err
}

// Target shows a target: its settings, releases and hosts. The name may have @ and a release.
func (c *Client) Target(ctx context.Context, name string) (wire.TargetDetail, error) {
	return get[wire.TargetDetail](ctx, c, "/v1/targets/"+id(name))
}

// DeleteTarget deletes an upload, NAME:VERSION; runs on it keep their records. The error wraps
// model.ErrConflict if a campaign on it has not ended.
func (c *Client) DeleteTarget(ctx context.Context, name string) error {
	return c.remove(ctx, "/v1/targets/"+id(name))
}

// Scripts lists the scripted tests that come with the daemon, with their text.
func (c *Client) Scripts(ctx context.Context) ([]wire.Script, error) {
	out, err := get[wire.Scripts](ctx, c, "/v1/scripts")
	return out.Items, err
}
