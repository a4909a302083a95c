// Bindings of the gradients and the steps of small networks.
#include <nanobind/stl/vector.h>

#include "core/binding.hpp"
#include "nets/adam.hpp"
#include "nets/perceptron.hpp"

namespace epicycle {

namespace {

// The arrays of the layers, held as long as the kernel that reads and writes them.
template <class T>
struct PerceptronArrays {
    std::vector<InOut2<T>> weights, weight_gradients;
    std::vector<InOut1<T>> biases, bias_gradients;

    std::vector<LinearLayer<T>> layers() const {
        constexpr const char *expected =
            "Perceptron: expected matrices (outputs, inputs) and vectors (outputs,), each layer with as many inputs as "
            "the one before has outputs, and gradients of the same shapes";
        const std::size_t count = weights.size();
        require(count > 0 && biases.size() == count && weight_gradients.size() == count &&
                    bias_gradients.size() == count,
                expected);
        std::vector<LinearLayer<T>> found;
        for (std::size_t l = 0; l < count; ++l) {
            const std::size_t outputs = weights[l].shape(0), inputs = weights[l].shape(1);
            require(outputs > 0 && inputs > 0 && biases[l].shape(0) == outputs &&
                        weight_gradients[l].shape(0) == outputs && weight_gradients[l].shape(1) == inputs &&
                        bias_gradients[l].shape(0) == outputs && (l == 0 || inputs == weights[l - 1].shape(0)),
                    expected);
            found.push_back({inputs, outputs, weights[l].data(), biases[l].data(), weight_gradients[l].data(),
                             bias_gradients[l].data()});
        }
        return found;
    }
};

template <class T>
class BoundPerceptron {
public:
    BoundPerceptron(PerceptronArrays<T> arrays, int activation, int loss, double smoothing)
        : arrays(std::move(arrays)),
          kernel(this->arrays.layers(), static_cast<Activation>(activation), static_cast<LossId>(loss), smoothing),
          loss(static_cast<LossId>(loss)) {
        require(activation >= 0 && activation <= static_cast<int>(Activation::relu), "activation: unknown");
        require(this->loss == LossId::softmax || this->loss == LossId::logistic || this->loss == LossId::squared ||
                    this->loss == LossId::poisson,
                "loss: unknown");
    }

    double of_classes(RowMajor<T> X, Vector<std::int64_t> y, Weight weight, double scale) {
        constexpr const char *expected = "gradient: expected a class below the number of outputs for each row of X";
        require(loss == LossId::softmax && y.shape(0) == X.shape(0) && all_below(y, kernel.outputs()), expected);
        return run(X, y.data(), nullptr, weight, scale);
    }

    double of_numbers(RowMajor<T> X, RowMajor<T> y, Weight weight, double scale) {
        constexpr const char *expected = "gradient: expected a number for each row of X and each output";
        require(loss != LossId::softmax && y.shape(0) == X.shape(0) && y.shape(1) == kernel.outputs(), expected);
        return run(X, nullptr, y.data(), weight, scale);
    }

private:
    PerceptronArrays<T> arrays;
    Perceptron<T> kernel;
    LossId loss;

    double run(const RowMajor<T> &X, const std::int64_t *classes, const T *numbers, const Weight &weight,
               double scale) {
        require(X.shape(1) == kernel.inputs(), "gradient: expected a column of X for each input");
        const double *v = pointer(weight, X.shape(0), "gradient: expected a weight for each row");
        nb::gil_scoped_release nogil;
        return kernel.gradient({X.shape(0), X.data(), classes, numbers, v, scale});
    }
};

template <class T>
void bind_perceptron(nb::module_ &m, const char *name) {
    using Class = BoundPerceptron<T>;
    nb::class_<Class>(m, name)
        .def(
            "__init__",
            [](Class *self, std::vector<InOut2<T>> weights, std::vector<InOut1<T>> biases,
               std::vector<InOut2<T>> weight_gradients, std::vector<InOut1<T>> bias_gradients, int activation, int loss,
               double smoothing) {
                new (self) Class(
                    {std::move(weights), std::move(weight_gradients), std::move(biases), std::move(bias_gradients)},
                    activation, loss, smoothing);
            },
            "weights"_a.noconvert(), "biases"_a.noconvert(), "weight_gradients"_a.noconvert(),
            "bias_gradients"_a.noconvert(), "activation"_a, "loss"_a, "smoothing"_a)
        .def("gradient", &Class::of_classes, "X"_a.noconvert(), "y"_a.noconvert(), "weight"_a, "scale"_a)
        .def("gradient", &Class::of_numbers, "X"_a.noconvert(), "y"_a.noconvert(), "weight"_a, "scale"_a);
}

// Flat arrays of one group of weights, held as long as their optimiser.
template <class T>
struct AdamArrays {
    std::vector<InOut1<T>> weights, gradients, means, squares;

    void step(double rate, double decay, double beta_1, double beta_2, double epsilon, double step, bool decoupled) {
        const AdamStep o{rate, decay, beta_1, beta_2, epsilon, step, decoupled};
        nb::gil_scoped_release nogil;
        for (std::size_t k = 0; k < weights.size(); ++k)
            adam(o, weights[k].shape(0), weights[k].data(), gradients[k].data(), means[k].data(), squares[k].data());
    }
};

template <class T>
void bind_adam(nb::module_ &m, const char *name) {
    using Class = AdamArrays<T>;
    nb::class_<Class>(m, name)
        .def(
            "__init__",
            [](Class *self, std::vector<InOut1<T>> weights, std::vector<InOut1<T>> gradients,
               std::vector<InOut1<T>> means, std::vector<InOut1<T>> squares) {
                constexpr const char *expected = "Adam: expected four lists of arrays of the same sizes";
                require(gradients.size() == weights.size() && means.size() == weights.size() &&
                            squares.size() == weights.size(),
                        expected);
                for (std::size_t k = 0; k < weights.size(); ++k)
                    for (const auto *array : {&gradients[k], &means[k], &squares[k]})
                        require(array->shape(0) == weights[k].shape(0), expected);
                new (self) Class{std::move(weights), std::move(gradients), std::move(means), std::move(squares)};
            },
            "weights"_a.noconvert(), "gradients"_a.noconvert(), "means"_a.noconvert(), "squares"_a.noconvert())
        .def("step", &Class::step, "rate"_a, "decay"_a, "beta_1"_a, "beta_2"_a, "epsilon"_a, "step"_a, "decoupled"_a);
}

}  // namespace

void bind_nets(nb::module_ &m) {
    bind_perceptron<float>(m, "PerceptronFloat32");
    bind_perceptron<double>(m, "PerceptronFloat64");
    bind_adam<float>(m, "AdamFloat32");
    bind_adam<double>(m, "AdamFloat64");
}

}  // namespace epicycle
