// The contract of rolebox's hook modules: handlers get (ctx, payload); what they return does not count, and what they
// edit in the payload does. Source: rolebox's documentation of hooks.
export const ON_LOAD = ['onLoad'];
export const NEEDS_ON_LOAD = false; // a warning, and the hook stays
export const EDITED = true;
export const RETURNS = false;

export function context({ spec, log, call, effect, payload }) {
  const blocks = Array.isArray(payload?.system) ? payload.system : [];
  return {
    hookName: spec.hook,
    config: spec.config ?? undefined,
    sessionID: call.sessionID,
    agent: call.agent,
    log,
    inject: (text) => effect('inject', text),
    skip: (reason) => effect('skip', reason),
    retry: (reason) => effect('retry', reason),
    getFunctionState: (name) => call.functions?.[name],
    getDispatchState: () => call.dispatch ?? { activeTaskCount: 0, tasks: [] },
    getGraphState: () => call.graph,
    getBlocks: () => blocks.map((content) => ({ tag: tagOf(content) || 'text', content })),
    replaceBlock: (tag, text) => change(blocks, tag, String(text)),
    removeBlock: (tag) => change(blocks, tag, null),
  };
}

export function invoke(handler, payload, ctx) {
  return payload === null ? handler(ctx) : handler(ctx, payload);
}

// A block is an entry that starts with <tag>; upstream's tags have no hyphen, its documentation's have.
function tagOf(content) {
  return /^\s*<([A-Za-z_][\w.:-]*)(?:\s[^<>]*)?>/.exec(content)?.[1] ?? '';
}

// The entry that starts with the tag, else the first <tag>…</tag> inside of one, and nothing around it.
function change(blocks, tag, text) {
  const at = blocks.findIndex((content) => tagOf(content) === tag);
  if (at >= 0) {
    blocks.splice(at, 1, ...(text === null ? [] : [text]));
    return;
  }
  const word = String(tag).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const element = new RegExp(`<${word}(?:\\s[^<>]*)?>[^]*?</${word}\\s*>`);
  const inside = blocks.findIndex((content) => typeof content === 'string' && element.test(content));
  if (inside >= 0) blocks[inside] = blocks[inside].replace(element, () => text ?? '');
}
