// hooks/lifecycle-example.js
export default {
  onLoad: (ctx) => {
    // Hook 注册时调用一次，适合初始化资源
    // ctx 包含 hookName、config、log 等
    ctx.log.info(`Hook ${ctx.hookName} loaded`);
  },
  onDispose: (ctx) => {
    // 插件关闭时调用一次，适合清理资源
    ctx.log.info(`Hook ${ctx.hookName} disposed`);
  },
};
