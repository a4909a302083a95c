// The module epicycle._native: one submodule for each folder of kernels. The binding files are the only ones that know
// Python.
#include "core/binding.hpp"
#include "core/threads.hpp"

namespace epicycle {
void bind_anomaly(nb::module_ &m);
void bind_bayes(nb::module_ &m);
void bind_byte_pairs(nb::module_ &m);
void bind_cluster(nb::module_ &m);
void bind_cluster_metrics(nb::module_ &m);
void bind_medoids(nb::module_ &m);
void bind_cart(nb::module_ &m);
void bind_causal_trees(nb::module_ &m);
void bind_control(nb::module_ &m);
void bind_core(nb::module_ &m);
void bind_counterfactual(nb::module_ &m);
void bind_density(nb::module_ &m);
void bind_factors(nb::module_ &m);
void bind_games(nb::module_ &m);
void bind_glm(nb::module_ &m);
void bind_graph(nb::module_ &m);
void bind_hierarchy(nb::module_ &m);
void bind_hierarchy_means(nb::module_ &m);
void bind_hmm(nb::module_ &m);
void bind_ica(nb::module_ &m);
void bind_topics(nb::module_ &m);
void bind_kalman(nb::module_ &m);
void bind_kernel(nb::module_ &m);
void bind_kernel_density(nb::module_ &m);
void bind_lars(nb::module_ &m);
void bind_lasso(nb::module_ &m);
void bind_linear(nb::module_ &m);
void bind_linear_svm(nb::module_ &m);
void bind_local(nb::module_ &m);
void bind_logistic(nb::module_ &m);
void bind_manifold(nb::module_ &m);
void bind_mixture(nb::module_ &m);
void bind_neighbor_embeddings(nb::module_ &m);
void bind_neighbors(nb::module_ &m);
void bind_nets(nb::module_ &m);
void bind_online(nb::module_ &m);
void bind_point_tree(nb::module_ &m);
void bind_pomdp(nb::module_ &m);
void bind_recommend(nb::module_ &m);
void bind_rl(nb::module_ &m);
void bind_robust(nb::module_ &m);
void bind_sampling(nb::module_ &m);
void bind_scaling(nb::module_ &m);
void bind_simulators(nb::module_ &m);
void bind_gibbs(nb::module_ &m);
void bind_stumps(nb::module_ &m);
void bind_svm(nb::module_ &m);
void bind_text(nb::module_ &m);
void bind_tree(nb::module_ &m);
void bind_tree_parts(nb::module_ &m);
void bind_tree_search(nb::module_ &m);
void bind_words(nb::module_ &m);
}  // namespace epicycle

NB_MODULE(_native, m) {
    using namespace epicycle;
    m.doc() = "Compiled kernels: pure functions of arrays.";
    release_pool_before_fork();
    nb::set_leak_warnings(false);  // a density that a module of the user holds lives to the end of the process
    const auto bind = [&m](const char *name, const char *doc, std::initializer_list<void (*)(nb::module_ &)> parts) {
        nb::module_ submodule = m.def_submodule(name, doc);
        for (const auto part : parts) part(submodule);
    };
    bind("core", "Finite values, moments, hashes of rows, threads.", {bind_core});
    bind("anomaly", "Isolation trees.", {bind_anomaly});
    bind("control", "Sweeps over the states of a Markov decision process; beliefs; filters; simulators.",
         {bind_control, bind_kalman, bind_pomdp, bind_simulators});
    bind("cluster",
         "The nearest of many centres; clusters of high density; trees of clusters; criteria of clusterings.",
         {bind_cluster, bind_cluster_metrics, bind_density, bind_hierarchy, bind_hierarchy_means, bind_medoids});
    bind("bayes", "Sums and moments of the rows of each class, the scores of classes, and Markov chains.",
         {bind_bayes, bind_sampling, bind_gibbs});
    bind("decomposition", "Factors of matrices; independent components; products with sparse rows.",
         {bind_factors, bind_ica, bind_topics});
    bind("linear", "Logistic regression, lasso, least angles, Huber and quantile regression.",
         {bind_linear, bind_logistic, bind_lasso, bind_lars, bind_robust});
    bind("glm", "Generalised linear models.", {bind_glm});
    bind("graph", "Directed graphs: d-connection, reachability.", {bind_graph});
    bind("hmm", "Hidden Markov chains: posteriors, most probable paths, densities of states.", {bind_hmm});
    bind("online", "Stochastic gradients, one row at a time.", {bind_online});
    bind("local", "Local regression on a line and in space.", {bind_local});
    bind("kernel", "Kernel matrices, string kernels, kernel perceptrons.", {bind_kernel});
    bind("manifold", "Embeddings: shortest paths, agreement of neighbourhoods, scaling, forces of neighbours.",
         {bind_manifold, bind_neighbor_embeddings, bind_scaling});
    bind("mixture", "Shares and sums of the components of a mixture.", {bind_mixture});
    bind("neighbors", "Exact nearest neighbours by brute force; kernel densities over a tree.",
         {bind_neighbors, bind_kernel_density, bind_point_tree});
    bind("nets", "Gradients and steps of small networks.", {bind_nets});
    bind("recommend", "Factors of users and items: alternating least squares, stochastic gradients.", {bind_recommend});
    bind("rl", "Learning by acting: temporal differences and Monte Carlo over numbered states.", {bind_rl});
    bind("search", "Rules of games, alpha-beta, Monte-Carlo tree search, counterfactual regrets.",
         {bind_games, bind_tree_search, bind_counterfactual});
    bind("svm", "Support vector machines.", {bind_svm, bind_linear_svm});
    bind("cart", "Decision trees and forests.", {bind_cart});
    bind("text", "Terms of documents: words and n-grams counted, hashed and weighed; byte-pair encoding.",
         {bind_text, bind_byte_pairs});
    bind("tree", "Boosted and causal trees over binned features, and stumps.",
         {bind_tree, bind_tree_parts, bind_stumps, bind_causal_trees});
    bind("words", "Vectors of words: word2vec and GloVe.", {bind_words});
}
