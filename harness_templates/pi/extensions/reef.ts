// Reef inside Pi: which release runs, what is new, and /good, /bad, /note for the last answer.
// Facts of this run are in reef.json in its folder; the token is read from Reef's own file and kept nowhere else.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

interface Release {
	release_id: string;
	number: number;
	reason: string;
	verdict: string;
}

interface Run {
	url: string;
	token_file: string;
	scenario: string;
	release: Release;
	activated: boolean;
	newer?: Release;
	poll_seconds: number;
	mcp?: Record<string, Parameters<ExtensionAPI["registerMcpServer"]>[1]>;
}

const RECEIPT = "x-reef-agent-record-id";
const ENTRY = "reef";

export default function reef(pi: ExtensionAPI) {
	const folder = process.env.REEF_SESSION_DIRECTORY ?? process.env.PI_CODING_AGENT_DIR ?? ".";
	const run: Run = JSON.parse(readFileSync(join(folder, "reef.json"), "utf8"));
	// On the person's own configuration there is no models.json of ours.
	const provider = join(folder, "provider.json");
	if (existsSync(provider)) pi.registerProvider("reef", JSON.parse(readFileSync(provider, "utf8")).providers.reef);
	// Pi before 1.0 knows no MCP servers. One of the person's own under the same name comes first.
	const refused: string[] = [];
	for (const [name, server] of Object.entries(run.mcp ?? {})) {
		try {
			pi.registerMcpServer?.(name, server);
		} catch (error) {
			refused.push(`Reef: MCP server ${name}: ${(error as Error).message}`);
		}
	}
	// Receipts of the last answer: all requests since the person last spoke.
	let receipts: string[] = [];
	let answered = true;
	let told = run.newer ?? run.release;
	let timer: ReturnType<typeof setInterval> | undefined;

	async function ask(path: string, body?: object): Promise<any> {
		const response = await fetch(run.url + path, {
			method: body ? "POST" : "GET",
			headers: {
				authorization: `Bearer ${readFileSync(run.token_file, "utf8").trim()}`,
				"content-type": "application/json",
				"x-reef-scenario": run.scenario,
			},
			body: body && JSON.stringify(body),
			signal: AbortSignal.timeout(10_000),
		});
		const data: any = await response.json();
		if (!response.ok) throw new Error(data.error?.message ?? `the daemon answered ${response.status}`);
		return data;
	}

	function status(ctx: ExtensionContext) {
		const newer = told.number > run.release.number ? ` · ${short(told)} from your next session` : "";
		ctx.ui.setStatus("reef", `Reef ${short(run.release)}${newer}`);
	}

	async function look(ctx: ExtensionContext) {
		try {
			const newer: Release[] = await ask(`/reef/harness/releases?after=${told.number}`);
			const newest = newer.reduce((best, one) => (one.number > best.number ? one : best), told);
			if (newest === told) return;
			told = newest;
			ctx.ui.notify(`Reef: ${line(told)} · available from your next session`, "info");
			status(ctx);
		} catch {
			// No daemon now: the next look, or the next request to the model, tells.
		}
	}

	pi.on("session_start", async (_event, ctx) => {
		for (const entry of ctx.sessionManager.getBranch()) {
			if (entry.type === "custom" && entry.customType === ENTRY) receipts = (entry.data as { receipts: string[] }).receipts;
		}
		if (!ctx.hasUI) return;
		for (const one of refused) ctx.ui.notify(one, "warning");
		if (run.newer) ctx.ui.notify(`Reef: ${line(run.newer)} · reef harness update --adapter pi takes it`, "info");
		else if (run.activated) ctx.ui.notify(`Reef: ${line(run.release)}`, "info");
		status(ctx);
		clearInterval(timer);
		timer = setInterval(() => void look(ctx), run.poll_seconds * 1000);
		timer.unref();
	});

	pi.on("session_shutdown", async () => clearInterval(timer));

	pi.on("agent_start", async () => {
		answered = true;
	});

	// So that an answer can still be rated after `reef-pi -c`.
	pi.on("agent_end", async () => {
		if (!answered) pi.appendEntry(ENTRY, { receipts });
	});

	pi.on("after_provider_response", async (event) => {
		const receipt = event.headers[RECEIPT];
		if (!receipt) return;
		receipts = answered ? [receipt] : [...receipts, receipt];
		answered = false;
	});

	async function report(ctx: ExtensionContext, word: string, score: number | undefined, text: string) {
		if (score !== undefined && receipts.length === 0) {
			ctx.ui.notify("Reef: there is no answer to rate yet", "warning");
			return;
		}
		try {
			const feedback = text.trim() || undefined;
			const made = await ask("/reef/report", { score, feedback, references: receipts });
			const about: string[] = made.references ?? [];
			const last = about.length ? ` on ${about[about.length - 1]}` : "";
			const more = about.length > 1 ? ` and ${about.length - 1} before it` : "";
			ctx.ui.notify(`Reef: ${word}${last}${more} · ${made.agent_record_id}`, "info");
		} catch (error) {
			ctx.ui.notify(`Reef: not recorded: ${error instanceof Error ? error.message : error}`, "error");
		}
	}

	pi.registerCommand("good", {
		description: "Reef: the last answer was good (and why)",
		handler: async (args, ctx) => report(ctx, "good", 1, args),
	});
	pi.registerCommand("bad", {
		description: "Reef: the last answer was bad (and why)",
		handler: async (args, ctx) => report(ctx, "bad", 0, args),
	});
	pi.registerCommand("note", {
		description: "Reef: what should be different from now on",
		handler: async (args, ctx) => {
			if (args.trim()) await report(ctx, "noted", undefined, args);
			else ctx.ui.notify("Reef: /note needs a text: /note use uv, not pip", "warning");
		},
	});
	pi.registerCommand("reef", {
		description: "Reef: the release this session runs",
		handler: async (_args, ctx) => {
			await look(ctx);
			const newer = told.number > run.release.number ? ` · newer: ${line(told)}` : "";
			ctx.ui.notify(`Reef: ${line(run.release)} · scenario ${run.scenario} · ${run.url}${newer}`, "info");
		},
	});
}

function short(release: Release): string {
	return release.release_id.split("-")[0];
}

// A release in a line; no character in it acts on the terminal.
function line(release: Release): string {
	const parts = [`release ${short(release)}`, release.reason, release.verdict].filter(Boolean);
	return parts.join(" · ").replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, " ");
}
