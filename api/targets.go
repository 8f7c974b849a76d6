package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"netsplit/api/wire"
	"netsplit/model"
)

// maxUpload bounds the archive of a target, in bytes; uploadTime is how long it may
// take to arrive.
const (
	maxUpload  = 33 << 20
	uploadTime = time.Minute
)

type uploadInput struct {
	RawBody []byte `contentType:"application/x-tar"`
}

func (s *server) targetRoutes() {
	get(s, "/v1/scripts", "list-scripts", "List the scripted tests that come with netsplit", s.listScripts)
	get(s, "/v1/targets", "list-targets", "List the targets that campaigns can name", s.listTargets)
	get(s, "/v1/targets/{name}", "get-target", "Show a target: its settings, releases and hosts", s.getTarget)
	op := operation(http.MethodPost, "/v1/targets", "upload-target", "Upload a target", http.StatusOK)
	op.MaxBodyBytes, op.BodyReadTimeout = maxUpload, uploadTime
	op.Description = "The body is a tar archive of the target's folder, optionally compressed by gzip: target.yaml and the files beside it, at most 32 MiB " +
		"and no links (tar -C FOLDER -c . | curl --data-binary @- …). Campaigns name it as in the answer: NAME:VERSION, where the version is a digest of the " +
		"files, or NAME for the last upload of that name. The processes of a target run as its file says: whoever may upload may run programs."
	huma.Register(s.api, op, s.uploadTarget)
	op = operation(http.MethodDelete, "/v1/targets/{name}", "delete-target", "Delete an uploaded target", http.StatusNoContent)
	op.Description = "The name is NAME:VERSION. A target of a campaign that has not ended is not deleted (409). Runs on it keep their records; to replay one, upload the same files again."
	huma.Register(s.api, op, s.deleteTarget)
}

func (s *server) listTargets(ctx context.Context, _ *none) (*body[wire.Targets], error) {
	list, err := s.Service.Targets(ctx)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Targets]{wire.Targets{Items: wire.All(list, fromTarget)}}, nil
}

func (s *server) listScripts(ctx context.Context, _ *none) (*body[wire.Scripts], error) {
	list, err := s.Service.Scripts(ctx)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Scripts]{wire.Scripts{Items: wire.All(list, wire.FromScript)}}, nil
}

// TargetParam names a target.
type TargetParam struct {
	Name string `path:"name" maxLength:"256" doc:"As the list has it, with @ and a release of its software if needed" example:"redis-sentinel"`
}

func (s *server) getTarget(ctx context.Context, in *TargetParam) (*body[wire.TargetDetail], error) {
	t, err := s.Service.Target(ctx, in.Name)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.TargetDetail]{wire.FromTarget(in.Name, t)}, nil
}

func (s *server) uploadTarget(ctx context.Context, in *uploadInput) (*body[wire.Target], error) {
	t, err := s.Service.UploadTarget(ctx, in.RawBody)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.Target]{fromTarget(t)}, nil
}

func (s *server) deleteTarget(ctx context.Context, in *struct {
	Name string `path:"name" doc:"NAME:VERSION, as the upload answered" example:"my-system:3f2a91c04b1d"`
	IfMatch
}) (*none, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := unchanged(s, in.IfMatch, func() (*body[wire.TargetDetail], error) { return s.getTarget(ctx, &TargetParam{in.Name}) }); err != nil {
		return nil, err
	}
	if err := s.Service.DeleteTarget(ctx, in.Name); err != nil {
		return nil, fromService(err)
	}
	return nil, nil
}

func fromTarget(t model.KnownTarget) wire.Target {
	return wire.Target{Name: t.Name, Uploaded: t.Uploaded, Newest: t.Newest}
}
