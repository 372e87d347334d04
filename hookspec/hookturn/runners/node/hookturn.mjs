// hookturn's own contract: handlers named after timings get (event, ctx) and return answers.
export const ON_LOAD = ['on_load', 'onLoad'];
export const NEEDS_ON_LOAD = true; // a hook whose onLoad throws is not loaded
export const EDITED = false;
export const RETURNS = true;

export function context({ spec, log, env, effect, ask }) {
  const values = (scope) => Object.freeze({
    get: (key, fallback = null) => ask({ op: 'get', scope, key, value: fallback }),
    set: (key, value) => ask({ op: 'set', scope, key, value }),
  });
  return Object.freeze({
    hookName: spec.hook,
    config: freeze(spec.config),
    projectDir: spec.project,
    env,
    log,
    inject: (text) => effect('inject', text),
    state: values('state'),
    store: values('store'),
  });
}

export function invoke(handler, event, ctx) {
  return handler(freeze(event), ctx);
}

// An event is data: a change to it would have no effect, so it is an error (return {rewrite: ...}).
function freeze(value) {
  if (value && typeof value === 'object' && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const key of Object.keys(value)) freeze(value[key]);
  }
  return value;
}
